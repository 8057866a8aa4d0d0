//! Menu of the setups that this browser keeps. What it holds is fetched when it is first opened.

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::menu::{Menu, on_key};
use crate::i18n::{t_string, use_i18n};
use crate::lazy::{Lazy, LazyPart};
use crate::part::text;

/// The menu; it closes by Escape.
#[component]
pub fn SetupsMenu() -> impl IntoView {
    let i18n = use_i18n();
    let menu = Menu::new();
    let is_open = RwSignal::new(false);
    let name = move || t_string!(i18n, setups.title).to_owned();
    let on_toggle = move |event: leptos::ev::Event| {
        let menu = event
            .target()
            .and_then(|t| t.dyn_into::<web_sys::HtmlDetailsElement>().ok());
        is_open.set(menu.is_some_and(|menu| menu.open()));
    };
    view! {
        <details class="menu setups" node_ref=menu on:toggle=on_toggle on:keydown=on_key(menu)>
            <summary class="tool step" data-testid="setups" aria-label=text(name) title=text(name)>
                <svg viewBox="0 0 16 16" aria-hidden="true">
                    <path d="M4 2.5h8v11l-4-3-4 3z" />
                </svg>
            </summary>
            <Show when=move || is_open.get()>
                <LazyPart of=Lazy::Setups />
            </Show>
        </details>
    }
}
