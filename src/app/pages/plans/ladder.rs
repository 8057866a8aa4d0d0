//! Ladder of memory-saving measures.

use leptos::prelude::*;
use vramscope_engine::format::{difference, gib};
use vramscope_engine::units::Bytes;
use vramscope_plan::{LadderStep, Plan};

use super::entries::{name, value};
use super::page::PlansState;
use super::recommended::Room;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::part;
use crate::words;

/// Applies the usual measures one after another and draws the memory after each against the plan's limit.
#[component]
pub fn Ladder() -> impl IntoView {
    let i18n = use_i18n();
    let page = PlansState::get();
    part(move || {
        let plan = page.plan(Plan::clone).filter(|plan| plan.ladder.len() > 1)?;
        let highest = plan
            .ladder
            .iter()
            .filter_map(|step| step.peak)
            .max()
            .unwrap_or_default();
        let rows: Vec<_> = plan
            .ladder
            .iter()
            .map(|step| row(i18n, step, highest.max(plan.planned), plan.planned))
            .collect();
        let offer = plan.offer.as_ref().map(|offer| offered(i18n, offer));
        let view = view! {
            <section class="card" data-testid="plan-ladder">
                <h2>{t!(i18n, recommend.ladder)}</h2>
                <p class="muted small">{t!(i18n, recommend.ladder_explain)}</p>
                <ol class="plans-bars">{rows}</ol>
                {offer.map(|offer| view! { <p data-testid="plan-offer">{offer}</p> })}
            </section>
        };
        Some(view.into_any())
    })
}

fn measure(i18n: Words, step: &LadderStep) -> String {
    match (&step.key, &step.to) {
        (Some(key), Some(to)) => format!("{}: {}", name(i18n, key), value(i18n, key, to)),
        _ => t_string!(i18n, recommend.as_asked).to_string(),
    }
}

fn row(i18n: Words, step: &LadderStep, of: Bytes, planned: Bytes) -> AnyView {
    let outcome = match (step.trains, step.kept) {
        (true, _) => t_string!(i18n, recommend.trains),
        (false, true) => t_string!(i18n, recommend.not_yet),
        (false, false) => t_string!(i18n, recommend.left_out),
    };
    let mut notes = vec![outcome.to_owned()];
    notes.extend(step.key.as_ref().map(|_| difference(step.difference)));
    notes.extend(
        step.phase
            .map(|phase| t_string!(i18n, recommend.peak_in, phase = words::phase(i18n, phase)).to_string()),
    );
    let peak = step.peak.unwrap_or_default();
    view! {
        <li
            class="plans-bar-row"
            class:muted=!step.kept
            data-testid="plan-rung"
            data-name=step.key.clone()
            data-value=step.peak.map(|peak| peak.get().to_string())
        >
            <span>{measure(i18n, step)}<small class="muted">{notes.join(" · ")}</small></span>
            <Room bytes=peak of planned />
            <span class="plans-number">{gib(peak)}</span>
        </li>
    }
    .into_any()
}

fn offered(i18n: Words, offer: &LadderStep) -> String {
    let (what, bytes) = (measure(i18n, offer), difference(offer.difference));
    match offer.trains {
        true => t_string!(i18n, recommend.offer_trains, what = what, bytes = bytes).to_string(),
        false => t_string!(i18n, recommend.offer_helps, what = what, bytes = bytes).to_string(),
    }
}
