//! On/off switch.

use std::sync::Arc;

use leptos::prelude::*;

use super::field::{ErrorText, control_id, described_by, error_of};
use super::help::{Help, HelpButton};
use super::prefetch::tells;
use crate::i18n::use_i18n;
use crate::part::text;
use crate::shell::Store;
use crate::state::Key;
use crate::words;

/// On/off switch.
#[component]
pub fn Switch(
    /// Key of the entry.
    #[prop(into)]
    key: Key,
) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let error = error_of(key);
    let open = RwSignal::new(false);
    let on = Memo::new(move |_| store.reading().with(|r| r.good.get(key) == "true"));
    // The control may be gone by the time that its next value is asked for.
    let texts = Arc::new(move || on.try_get_untracked().map(|on| (!on).to_string()).into_iter().collect());
    view! {
        <div class="field field-switch" {..tells(key, texts)}>
            <div class="field-head">
            <label class="switch">
                <input
                    id=control_id(key)
                    type="checkbox"
                    data-testid=key.name()
                    role="switch"
                    aria-describedby=described_by(key)
                    prop:checked=move || on.get()
                    on:change:target=move |ev| store.set(key, ev.target().checked().to_string())
                />
                <span class="switch-track" aria-hidden="true"></span>
                <span>{text(move || words::label(i18n, key))}</span>
            </label>
            <HelpButton key open />
            </div>
            <Help key open />
            <ErrorText key error />
        </div>
    }
}
