//! Copies the HTML that embeds a widget in another page.

use leptos::prelude::*;

use crate::i18n::t_string;
use crate::shell::{CopyButton, Store};

/// Copies the HTML of a widget that shows the current entries. Hidden if the page was opened from a file, since it has
/// no address that another page could use.
#[component]
pub fn CopyEmbedCode() -> impl IntoView {
    let store = Store::get();
    let hosted = home().is_some();
    view! {
        <Show when=move || hosted>
            <CopyButton
                testid="copy-embed"
                label=|i18n| t_string!(i18n, embed.copy)
                text=move || home().map(|home| code(store, &home)).unwrap_or_default()
            />
        </Show>
    }
}

/// Folder that serves the page.
fn home() -> Option<String> {
    let location = window().location();
    let (origin, path) = (location.origin().ok()?, location.pathname().ok()?);
    let (folder, _) = path.rsplit_once('/')?;
    origin.starts_with("http").then(|| format!("{origin}{folder}/"))
}

fn code(store: Store, home: &str) -> String {
    let attributes = untrack(|| store.address()).to_attributes();
    format!("<script src=\"{home}embed.js\" async></script>\n<vramscope-widget{attributes}></vramscope-widget>")
}
