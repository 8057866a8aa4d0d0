//! The frame around every page: header, address, theme, language, and what happens on a fault.

mod app;
mod clipboard;
mod copy_button;
mod embed;
mod embed_code;
pub mod fault;
mod header;
mod host;
mod given;
mod install;
mod language;
mod my_card;
mod notices;
pub mod preferences;
mod store;
mod theme;
mod update;

pub use clipboard::copy as copy_text;
pub use copy_button::CopyButton;
pub use given::Given;
pub use my_card::MyCard;
pub use store::{Near, Store};
pub use theme::CurrentTheme;

use crate::i18n::Language;

/// Puts the page into the document, once its words are there.
pub fn start() {
    fault::watch();
    wasm_bindgen_futures::spawn_local(async {
        let language = Language::load(language::first()).await;
        leptos::mount::mount_to_body(move || app::app(language));
    });
}
