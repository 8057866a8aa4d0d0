//! Help text of an entry and the button that shows it.

use leptos::prelude::*;

use crate::i18n::{t_string, use_i18n};
use crate::part::text;
use crate::state::Key;
use crate::words;

fn help_id(key: Key) -> String {
    format!("help-{}", key.name())
}

/// Shows or hides the help of an entry.
#[component]
pub fn HelpButton(key: Key, open: RwSignal<bool>) -> impl IntoView {
    let i18n = use_i18n();
    let name = text(move || t_string!(i18n, widget.help, what = words::label(i18n, key)));
    view! {
        <button
            type="button"
            class="help-button"
            aria-label=name
            aria-expanded=text(move || open.get().to_string())
            aria-controls=help_id(key)
            on:click=move |_| open.update(|open| *open = !*open)
        >
            "?"
        </button>
    }
}

/// Help of an entry. Screen readers announce it at the control even while it is hidden.
#[component]
pub fn Help(key: Key, open: RwSignal<bool>) -> impl IntoView {
    let i18n = use_i18n();
    view! {
        <p class="field-help" id=help_id(key) hidden=move || !open.get()>
            {text(move || words::help(i18n, key).unwrap_or_default())}
        </p>
    }
}
