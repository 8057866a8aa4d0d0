//! The course's file of a language, which lies beside the page.

use leptos::task::spawn_local;

use leptos::prelude::*;

use super::desk::Desk;
use crate::course::Book;
use crate::fetched::published;
use crate::i18n::Locale;

/// The course in a language; nothing where it cannot be had.
pub async fn load(locale: Locale) -> Option<Book> {
    let name = match locale {
        Locale::En => "courseen",
        Locale::ZhCn => "coursezhcn",
        Locale::ZhTw => "coursezhtw",
    };
    Book::read(&published(name).await?)
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
