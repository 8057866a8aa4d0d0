//! Loads the course's file of a language.

use leptos::task::spawn_local;

use leptos::prelude::*;

use super::page::CourseState;
use crate::course::Book;
use crate::fetched::published;
use crate::i18n::Locale;

/// Loads the course in a language; `None` if it cannot be fetched.
pub async fn load(locale: Locale) -> Option<Book> {
    let name = match locale {
        Locale::En => "courseen",
        Locale::ZhCn => "coursezhcn",
        Locale::ZhTw => "coursezhtw",
    };
    Book::read(&published(name).await?)
}

/// Shows the course in a language once it is loaded.
pub fn follow(page: CourseState, locale: Locale) {
    page.wanted.set_value(Some(locale));
    spawn_local(async move {
        let book = load(locale).await;
        // The reader may have left or chosen another language in the meantime.
        if page.wanted.try_get_value().flatten() == Some(locale) {
            page.failed.set(book.is_none());
            page.book.set(book.map(std::sync::Arc::new));
        }
    });
}
