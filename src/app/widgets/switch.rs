use leptos::prelude::*;

use super::field::{ErrorText, control_id, error_of};
use crate::i18n::use_i18n;
use crate::shell::Store;
use crate::state::Key;
use crate::words;

/// On or off.
#[component]
pub fn Switch(
    /// The entry.
    key: Key,
) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let error = error_of(key);
    let on = move || store.reading().with(|r| r.good.get(key) == "true");
    view! {
        <div class="field field-switch">
            <label class="switch">
                <input
                    id=control_id(key)
                    type="checkbox"
                    data-testid=key.name()
                    prop:checked=on
                    on:change:target=move |ev| store.set(key, ev.target().checked().to_string())
                />
                <span class="switch-track" aria-hidden="true"></span>
                <span>{move || words::label(i18n, key)}</span>
            </label>
            <ErrorText key error />
        </div>
    }
}
