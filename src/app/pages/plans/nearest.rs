//! Nearest setup when none fits.

use leptos::prelude::*;
use vramscope_engine::format::gib;
use vramscope_engine::tape::Kind;

use super::entries::{planner, summary};
use super::page::PlansState;
use super::recommended::Room;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::part;
use crate::shell::Store;
use crate::words;

/// Shows the nearest setup if none fits, with the memory that it lacks and the kinds of tensors that take it.
#[component]
pub fn NearestCard() -> impl IntoView {
    let i18n = use_i18n();
    let (page, store) = (PlansState::get(), Store::get());
    part(move || {
        let news = page.news.get()?;
        let plan = news.plan.as_ref()?;
        let nearest = plan.nearest.as_ref().filter(|_| plan.recommended.is_none())?;
        let pairs: Vec<_> = summary(i18n, &nearest.choice)
            .into_iter()
            .map(|(name, value)| view! { <div><dt>{name}</dt><dd>{value}</dd></div> })
            .collect();
        let rows: Vec<_> = nearest
            .parts
            .iter()
            .map(|(kind, bytes)| {
                let named = Kind::ALL.into_iter().find(|known| known.label() == kind);
                let name = named.map_or_else(|| kind.clone(), |kind| words::kind(i18n, kind));
                view! {
                    <li class="plans-bar-row">
                        <span>{name}</span>
                        <Room bytes=*bytes of=plan.planned planned=plan.planned />
                        <span class="plans-number">{gib(*bytes)}</span>
                    </li>
                }
            })
            .collect();
        let href = planner(store, &nearest.choice);
        let link =
            view! { <a class="tool" href=href data-testid="nearest-open">{t!(i18n, recommend.open_planner)}</a> };
        let words = t_string!(
            i18n,
            recommend.short,
            short = gib(nearest.short),
            phase = words::phase(i18n, nearest.phase)
        )
        .to_string();
        let view = view! {
            <section class="card plans-nothing" data-testid="plan-nearest" data-value=nearest.short.get().to_string()>
                <h2>{t!(i18n, recommend.nothing)}</h2>
                <dl class="plans-entries-told">{pairs}</dl>
                <p>{words}</p>
                <h3>{t!(i18n, recommend.stands)}</h3>
                <ul class="plans-bars">{rows}</ul>
                <p class="plans-tools">{link}</p>
            </section>
        };
        Some(view.into_any())
    })
}
