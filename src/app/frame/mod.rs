//! The frame around every page: the page as a whole, its header, notices, and parts of it inside another page.

mod app;
mod embed;
mod embed_code;
mod header;
mod host;
mod install;
mod notices;
mod update;

use crate::i18n::Language;
use crate::shell::{fault, language};

/// Puts the page into the document, once its words are there.
pub fn start() {
    fault::watch();
    wasm_bindgen_futures::spawn_local(async {
        let language = Language::load(language::first()).await;
        leptos::mount::mount_to_body(move || app::app(language));
    });
}
