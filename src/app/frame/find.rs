//! The way to a setting, a page or a number by its name: a button in the header, and Ctrl+K anywhere.

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use crate::events::listen_first;
use crate::i18n::{t_string, use_i18n};
use crate::lazy::{Lazy, LazyPart};
use crate::part::text;
use crate::shell::Given;

/// Opens the list of names by Ctrl+K, or ⌘K.
pub fn follow_find() {
    let is_open = Given::get().finding;
    listen_first(&window(), "keydown", move |event| {
        let Some(event) = event.dyn_ref::<web_sys::KeyboardEvent>() else {
            return;
        };
        let is_held = (event.ctrl_key() || event.meta_key()) && !event.alt_key() && !event.shift_key();
        if is_held && event.key().eq_ignore_ascii_case("k") {
            // Browsers put the caret into their address bar.
            event.prevent_default();
            is_open.set(true);
        }
    });
}

/// Button that opens the list.
#[component]
pub fn FindButton() -> impl IntoView {
    let i18n = use_i18n();
    let is_open = Given::get().finding;
    let name = move || t_string!(i18n, find.title).to_owned();
    view! {
        <button
            type="button"
            class="tool step"
            data-testid="find"
            aria-label=text(name)
            aria-keyshortcuts="Control+K"
            title=text(move || format!("{} (Ctrl+K)", name()))
            on:click=move |_| is_open.set(true)
        >
            <svg viewBox="0 0 16 16" aria-hidden="true">
                <path d="M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 1 0 0-9M10.3 10.3l3.4 3.4" />
            </svg>
        </button>
    }
}

/// Place of the list, which is fetched when it is first opened.
#[component]
pub fn FindPlace() -> impl IntoView {
    let is_open = Given::get().finding;
    view! {
        <Show when=move || is_open.get()>
            <LazyPart of=Lazy::Find />
        </Show>
    }
}
