//! The button for embedding what the page shows in another page.

use leptos::prelude::*;

use crate::i18n::t_string;
use crate::shell::{CopyButton, Store};

/// Button that copies the HTML of a `<vramscope-widget>` with the current entries. Hidden if the page was opened from a
/// file, since it then has no address from which another page could load the widget.
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

/// URL of the folder that serves the page, with a slash at its end; `None` if it is not served over HTTP.
fn home() -> Option<String> {
    let location = window().location();
    let (origin, path) = (location.origin().ok()?, location.pathname().ok()?);
    let (folder, _) = path.rsplit_once('/')?;
    origin.starts_with("http").then(|| format!("{origin}{folder}/"))
}

/// HTML that loads the widget's script and shows the widget.
fn code(store: Store, home: &str) -> String {
    // Each attribute begins with a space. The address is read at the click, where nothing could track it.
    let attributes = untrack(|| store.address()).to_attributes();
    format!("<script src=\"{home}embed.js\" async></script>\n<vramscope-widget{attributes}></vramscope-widget>")
}
