//! The frame around every page: header, notices, offers to install and update, and the page as a widget inside another
//! page.

mod app;
mod embed;
mod embed_code;
mod find;
mod header;
mod host;
mod install;
mod menu;
mod notices;
mod setups;
mod share;
mod steps;
mod unknown;
mod update;

use crate::i18n::Language;
use crate::shell::{fault, language};

/// Mounts the page once the texts of its language are loaded.
pub fn start() {
    fault::install_panic_hook();
    wasm_bindgen_futures::spawn_local(async {
        let language = Language::load(language::initial()).await;
        leptos::mount::mount_to_body(move || app::app(language));
    });
}
