//! The course's file of a language, which lies beside the page.

use leptos::task::spawn_local;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::JsFuture;

use leptos::prelude::*;

use super::desk::Desk;
use crate::course::Book;
use crate::i18n::Locale;

#[wasm_bindgen]
extern "C" {
    /// `style/boot.js`: the course in a language, as text.
    #[wasm_bindgen(js_namespace = vramscope, js_name = course)]
    fn fetch(language: &str) -> js_sys::Promise;
}

/// The course in a language; nothing where it cannot be had.
pub async fn load(locale: Locale) -> Option<Book> {
    let text = JsFuture::from(fetch(locale.as_str())).await.ok()?;
    Book::read(&text.as_string()?)
}

/// Shows the course in a language, as soon as it is there.
pub fn follow(desk: Desk, locale: Locale) {
    desk.wanted.set_value(Some(locale));
    spawn_local(async move {
        let book = load(locale).await;
        // The reader may have gone, or chosen another language meanwhile.
        if desk.wanted.try_get_value().flatten() == Some(locale) {
            desk.failed.set(book.is_none());
            desk.book.set(book.map(std::sync::Arc::new));
        }
    });
}
