//! The plan page's panel on time: the breakdown of a step, then entries for the whole run.

use std::sync::Arc;

use leptos::prelude::*;

use super::chart::Lines;
use super::entries::RunEntries;
use super::explained::{Explanation, ToldPanel};
use super::figures::Figures;
use super::follow::Times;
use super::kernels::Kernels;
use super::source::Sources;
use super::untimed::Untimed;
use super::waits::Waits;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::part;
use crate::simulation::Simulation;
use crate::worker::timing::{NoTime, Timing};

/// The breakdown on screen, provided as context so that [`RunEntries`] can comment on it; `None` while there is none.
#[derive(Clone, Copy)]
pub struct Shown(pub Memo<Option<Arc<Timing>>>);

/// Shows the time breakdown of a step and the cost of the run.
#[component]
pub fn TimePanel() -> impl IntoView {
    let i18n = use_i18n();
    let times = Times::follow();
    Explanation::provide();
    let step_ms = Simulation::get().step_ms;
    Effect::new(move || {
        let timing = times.now.get().and_then(Result::ok).filter(|_| !times.is_waiting.get());
        step_ms.set(timing.map(|timing| timing.step_ms));
    });
    on_cleanup(move || _ = step_ms.try_set(None));
    provide_context(Shown(Memo::new(move |_| times.now.get().and_then(Result::ok))));
    let body = part(move || {
        Some(match times.now.get() {
            None => view! { <p class="muted" role="status">{t!(i18n, time.working)}</p> }.into_any(),
            Some(Err(why)) => {
                let words = match why {
                    NoTime::Card(card) => t_string!(i18n, time.no_card, card = card),
                    NoTime::Compiled => t_string!(i18n, time.no_compiled).to_owned(),
                    NoTime::Generates => t_string!(i18n, time.no_generation).to_owned(),
                };
                view! { <p class="muted" role="status" data-testid="no-time">{words}</p> }.into_any()
            }
            Some(Ok(timing)) => view! {
                <Lines timing=timing.clone() />
                <Figures timing=timing.clone() />
                <Waits timing=timing.clone() />
                <Kernels timing=timing.clone() />
                <Untimed timing=timing.clone() />
                <Sources timing />
            }
            .into_any(),
        })
    });
    // The entries and the explanation stand outside the body, which every new time rebuilds: there they would lose the
    // focus, and close.
    view! {
        <div class="time-body" aria-busy=move || times.is_waiting.get().to_string() data-testid="time-body">
            {body}
        </div>
        <RunEntries />
        <ToldPanel />
    }
}
