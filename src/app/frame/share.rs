//! Menu of ways to take the page elsewhere: its address, code that embeds it, the page as an app.

use leptos::prelude::*;

use super::embed_code::CopyEmbedCode;
use super::install::InstallButton;
use super::menu::{Menu, close, on_key, on_leave};
use crate::i18n::{t, t_string, use_i18n};
use crate::shell::{CopyButton, Store};

/// The menu; it closes by Escape, and when the focus leaves it.
#[component]
pub fn ShareMenu() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let menu = Menu::new();
    view! {
        <details class="menu share" node_ref=menu on:keydown=on_key(menu) on:focusout=on_leave(menu)>
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
                <li on:click=move |_| close(menu)>
                    <InstallButton />
                </li>
            </ul>
        </details>
    }
}
