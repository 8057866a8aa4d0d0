//! Help text of an entry and the button that shows it.

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use crate::events::listen;
use crate::i18n::{t_string, use_i18n};
use crate::part::text;
use crate::state::Key;
use crate::words;

fn help_id(key: Key) -> String {
    format!("help-{}", key.name())
}

/// Keeps help buttons out of the way of Tab, which would stop twice at each entry: Shift+Tab leads from an entry to its
/// help.
pub fn keep_help_aside() {
    for (kind, index) in [("focusin", "0"), ("focusout", "-1")] {
        listen(&document(), kind, move |event| {
            let at = event.target().and_then(|at| at.dyn_into::<web_sys::Element>().ok());
            let field = at.and_then(|at| at.closest(".field").ok().flatten());
            let help = field.and_then(|field| field.query_selector(".help-button").ok().flatten());
            if let Some(help) = help {
                // Only an invalid name is refused.
                help.set_attribute("tabindex", index).ok();
            }
        });
    }
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
            tabindex="-1"
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
