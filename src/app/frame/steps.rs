//! Undo and redo of changes to the setup.

use leptos::ev::KeyboardEvent;
use leptos::prelude::*;

use crate::events::listen;
use crate::i18n::{t_string, use_i18n};
use crate::part::text;
use crate::shell::{History, Store};
use wasm_bindgen::JsCast;

/// Two buttons, which are the browser's Back and Forward within this visit; Ctrl+Z and Ctrl+Shift+Z outside text fields.
#[component]
pub fn UndoButtons() -> impl IntoView {
    let history = Store::get().history();
    listen(&window(), "keydown", move |event| {
        if let Some(event) = event.dyn_ref::<KeyboardEvent>() {
            by_key(history, event);
        }
    });
    view! {
        <Step
            testid="undo"
            path="M6.5 3.5L3 7l3.5 3.5M3.5 7H10a3 3 0 0 1 0 6H7"
            is_there=Signal::derive(move || history.can_undo())
            act=Callback::new(move |()| history.undo())
        />
        <Step
            testid="redo"
            path="M9.5 3.5L13 7l-3.5 3.5M12.5 7H6a3 3 0 0 0 0 6h3"
            is_there=Signal::derive(move || history.can_redo())
            act=Callback::new(move |()| history.redo())
        />
    }
}

/// Returns true if the focus is in a field with an undo of its own.
fn is_in_text() -> bool {
    let focused = document().active_element();
    focused.is_some_and(|focused| focused.matches("input, textarea").unwrap_or_default())
}

/// Undoes or redoes by keys, outside fields with an undo of their own.
fn by_key(history: History, event: &KeyboardEvent) {
    let is_command = (event.ctrl_key() || event.meta_key()) && !event.alt_key();
    if !is_command || is_in_text() {
        return;
    }
    match (event.key().to_ascii_lowercase().as_str(), event.shift_key()) {
        ("z", false) => history.undo(),
        ("z", true) | ("y", false) => history.redo(),
        _ => return,
    }
    event.prevent_default();
}

#[component]
fn Step(testid: &'static str, path: &'static str, is_there: Signal<bool>, act: Callback<()>) -> impl IntoView {
    let i18n = use_i18n();
    let name = move || match testid {
        "undo" => t_string!(i18n, header.undo).to_string(),
        _ => t_string!(i18n, header.redo).to_string(),
    };
    view! {
        <button
            type="button"
            class="tool step"
            data-testid=testid
            aria-label=text(name)
            title=text(name)
            disabled=move || !is_there.get()
            on:click=move |_| act.run(())
        >
            <svg viewBox="0 0 16 16" aria-hidden="true">
                <path d=path />
            </svg>
        </button>
    }
}
