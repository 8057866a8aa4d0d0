//! Reason why there is no run, and the way on.

use leptos::prelude::*;
use vramscope_engine::simulate::Change;

use crate::i18n::{t, t_string, use_i18n};
use crate::part::part;
use crate::shell::Store;
use crate::simulation::{Outcome, Simulation};
use crate::state::Route;
use crate::widgets::{WaysOut, take_way};
use crate::words;
use crate::worker::Refusal;

/// Shows the command that records a model that cannot be simulated.
#[component]
fn Record() -> impl IntoView {
    let i18n = use_i18n();
    view! {
        <p>{t!(i18n, refusal.record)}</p>
        <pre class="command" tabindex="0" aria-label=t!(i18n, export.command) data-testid="record-command">
            <code>"python -m vramscope.record --model config.json --batch 1 --seq 2048"</code>
        </pre>
        <p>
            <a href=Route::Recorded.fragment("")>{t!(i18n, refusal.to_recordings)}</a>
        </p>
    }
}

/// Explains why there is no run, and that the entries are kept.
#[component]
pub fn RefusedPanel() -> impl IntoView {
    let i18n = use_i18n();
    let (outcome, store) = (Simulation::get().outcome, Store::get());
    let take = Callback::new(move |way: Change| store.edit(|draft| take_way(draft, &way)));
    part(move || {
        let Outcome::Refused(why) = outcome.get() else {
            return None;
        };
        let title = match why {
            Refusal::Model(_) => t_string!(i18n, refusal.model),
            Refusal::Setup(_) => t_string!(i18n, refusal.setup),
        };
        Some(
            view! {
                <section class="card refusal" role="alert" data-testid="refusal">
                    <h2>{title}</h2>
                    <p class="refusal-message">{words::refusal(i18n, &why)}</p>
                    <WaysOut why=why.clone() take />
                    <p class="muted">{t!(i18n, refusal.kept)}</p>
                    {matches!(why, Refusal::Model(_)).then(|| view! { <Record /> })}
                </section>
            }
            .into_any(),
        )
    })
}
