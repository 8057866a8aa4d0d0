use leptos::prelude::*;
use vramscope_engine::format::gib;
use vramscope_engine::verdict::Verdict;

use crate::i18n::{Words, t_string, use_i18n};
use crate::simulation::Simulation;
use crate::worker::view::Card;

/// Whether it fits, in words and colour, and by how much.
#[component]
pub fn VerdictLine() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    move || {
        let run = simulation.run()?;
        Some(match &run.card {
            Ok(card) => {
                let verdict = card.fit.verdict;
                view! {
                    <div
                        class=format!("verdict verdict-{}", verdict.name())
                        data-testid="verdict"
                        data-value=verdict.name()
                        role="status"
                    >
                        <Icon verdict />
                        <p class="verdict-words">{headline(i18n, card)}</p>
                        <p class="verdict-detail">{detail(i18n, card)}</p>
                    </div>
                }
                .into_any()
            }
            Err(message) => view! { <p class="refusal-message">{message.clone()}</p> }.into_any(),
        })
    }
}

fn headline(i18n: Words, card: &Card) -> String {
    let name = card.name.clone();
    match card.fit.verdict {
        Verdict::Fits => t_string!(i18n, verdict.fits, card = name).to_string(),
        Verdict::Tight => t_string!(i18n, verdict.tight, card = name).to_string(),
        Verdict::Oom => t_string!(i18n, verdict.oom, card = name).to_string(),
    }
}

fn detail(i18n: Words, card: &Card) -> String {
    let (needed, room) = (gib(card.fit.needed), gib(card.fit.room));
    if card.fit.needed > card.fit.room {
        let short = gib(card.fit.short());
        t_string!(i18n, verdict.short, needed = needed, room = room, short = short).to_string()
    } else {
        let spare = gib(card.fit.spare());
        t_string!(i18n, verdict.spare, needed = needed, room = room, spare = spare).to_string()
    }
}

/// The verdict's shape, so that it does not rest on colour.
#[component]
fn Icon(verdict: Verdict) -> impl IntoView {
    let path = match verdict {
        Verdict::Fits => "M7 12.5l3.5 3.5 7-8",
        Verdict::Tight => "M12 6.5v7M12 17v.5",
        Verdict::Oom => "M8 8l8 8M16 8l-8 8",
    };
    view! {
        <svg class="verdict-icon" viewBox="0 0 24 24" aria-hidden="true">
            <circle cx="12" cy="12" r="11" />
            <path d=path />
        </svg>
    }
}
