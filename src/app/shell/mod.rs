//! The frame around every page: header, address, theme, language, and what happens on a fault.

mod app;
mod clipboard;
pub mod fault;
mod header;
mod language;
mod notices;
mod preferences;
mod store;
mod theme;

pub use store::Store;
pub use theme::CurrentTheme;

/// Puts the page into the document.
pub fn start() {
    fault::watch();
    leptos::mount::mount_to_body(app::App);
}
