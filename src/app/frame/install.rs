use leptos::prelude::*;

use super::host;
use crate::i18n::{t, use_i18n};

/// Installs the page as an app, where the browser offers to.
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

/// The page as one file, to be kept; it lies beside the page, and the file itself has nothing beside it.
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
