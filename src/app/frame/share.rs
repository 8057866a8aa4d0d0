//! Menu of ways to take the page elsewhere: its address, code that embeds it, the page as an app.

use leptos::ev::{FocusEvent, KeyboardEvent};
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::embed_code::CopyEmbedCode;
use super::install::InstallButton;
use crate::i18n::{t, t_string, use_i18n};
use crate::shell::{CopyButton, Store};

/// The menu; it closes by Escape, and when the focus leaves it.
#[component]
pub fn ShareMenu() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let menu = NodeRef::<html::Details>::new();
    let close = move || {
        if let Some(menu) = menu.get_untracked() {
            menu.set_open(false);
        }
    };
    let on_key = move |event: KeyboardEvent| {
        if event.key() == "Escape" {
            close();
        }
    };
    let on_leave = move |event: FocusEvent| {
        let to = event
            .related_target()
            .and_then(|to| to.dyn_into::<web_sys::Node>().ok());
        let stays = menu.get_untracked().is_some_and(|menu| menu.contains(to.as_ref()));
        // A press on what takes no focus, such as the page's background, has no target.
        if to.is_some() && !stays {
            close();
        }
    };
    view! {
        <details class="menu share" node_ref=menu on:keydown=on_key on:focusout=on_leave>
            <summary class="tool" data-testid="share">
                {t!(i18n, header.share)}
            </summary>
            <ul>
                <li>
                    <CopyButton
                        testid="copy-link"
                        label=|i18n| t_string!(i18n, header.copy_link)
                        text=move || store.link_to_keep()
                    />
                </li>
                <li>
                    <CopyEmbedCode />
                </li>
                <li on:click=move |_| close()>
                    <InstallButton />
                </li>
            </ul>
        </details>
    }
}
