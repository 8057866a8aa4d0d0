//! Entries that affect the time or cost of a run.

use leptos::prelude::*;

use super::panel::Shown;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::part;
use crate::shell::Store;
use crate::state::{Key, Scope};
use crate::widgets::{Entry, Number};

/// Entries for the data pipeline and the whole run; none of them changes memory.
#[component]
pub fn RunEntries() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    // The network between GPUs stands beside their number.
    let is_here = |key: Key| key.scope() == Scope::Time && key != Key::Link;
    let open = untrack(|| Key::all().any(|key| is_here(key) && store.has(key)));
    let Shown(timing) = expect_context();
    let note = part(move || {
        let timing = timing.get()?;
        if let Some(why) = timing.wrong_data.clone() {
            let words = t_string!(i18n, time.wrong_data, why = why);
            return Some(view! { <p class="field-error" role="alert" data-testid="wrong-data">{words}</p> }.into_any());
        }
        let [now, best] = timing.workers?.map(|n| n.to_string());
        let words = t_string!(i18n, time.workers, now = now, best = best);
        Some(view! { <p class="muted small" data-testid="workers">{words}</p> }.into_any())
    });
    view! {
        <details class="finer time-entries" prop:open=open data-testid="time-entries">
            <summary>{t!(i18n, time.run)}</summary>
            <div class="time-fields">
                <Entry key=Key::Data placeholder="read=2,decode=8,workers=4" />
                <Number key=Key::Samples step=10_000 placeholder="1000000" />
                <Entry key=Key::PricePerHour placeholder="2.5" />
                <Entry key=Key::Watts placeholder="700" />
            </div>
            {note}
        </details>
    }
}
