//! Install button and link to the single-file version.

use leptos::prelude::*;

use super::host;
use crate::i18n::{t, use_i18n};

/// Installs the page as an app, if the browser offers it.
#[component]
pub fn InstallButton() -> impl IntoView {
    let i18n = use_i18n();
    let possible = host::offered("install");
    view! {
        <Show when=move || possible.get()>
            <button type="button" class="tool" on:click=|_| host::ask("install") data-testid="install">
                {t!(i18n, offline.install)}
            </button>
        </Show>
    }
}

/// Link to the page as a single file, which is served beside it. Hidden in the single file itself.
#[component]
pub fn SingleFileLink() -> impl IntoView {
    let i18n = use_i18n();
    let is_file = window().location().protocol().is_ok_and(|protocol| protocol == "file:");
    view! {
        <Show when=move || !is_file>
            <p>
                <a href="vramscope.html" download="vramscope.html" data-testid="single-file">
                    {t!(i18n, offline.single_file)}
                </a>
            </p>
        </Show>
    }
}
