//! The button that copies code with which another page embeds this one.

use leptos::prelude::*;

use crate::i18n::t_string;
use crate::shell::{CopyButton, Store};

/// Button that copies the HTML of a `<vramscope-widget>` with the current entries. Hidden if the page was opened from a
/// file, since it then has no address from which another page could load the widget.
#[component]
pub fn CopyEmbedCode() -> impl IntoView {
    let store = Store::get();
    let hosted = page_folder().is_some();
    view! {
        <Show when=move || hosted>
            <CopyButton
                testid="copy-embed"
                label=|i18n| t_string!(i18n, embed.copy)
                text=move || page_folder().map(|folder| embed_code(store, &folder)).unwrap_or_default()
            />
        </Show>
    }
}

/// URL of the folder that serves the page, with a slash at its end; `None` if it is not served over HTTP.
fn page_folder() -> Option<String> {
    let location = window().location();
    let (origin, path) = (location.origin().ok()?, location.pathname().ok()?);
    let (folder, _) = path.rsplit_once('/')?;
    origin.starts_with("http").then(|| format!("{origin}{folder}/"))
}

/// HTML that loads the widget's script and shows the widget.
fn embed_code(store: Store, folder: &str) -> String {
    // Read once, at the click. Each attribute brings its leading space.
    let attributes = untrack(|| store.address()).to_attributes();
    format!("<script src=\"{folder}embed.js\" async></script>\n<vramscope-widget{attributes}></vramscope-widget>")
}
