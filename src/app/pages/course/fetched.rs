//! Loads the course's file of a language.

use std::sync::OnceLock;

use leptos::prelude::*;
use leptos::task::spawn_local;

use super::state::CourseState;
use crate::course::Book;
use crate::fetched::published;
use crate::i18n::Locale;

/// The course in each language, once it is loaded.
static BOOKS: [OnceLock<Book>; 3] = [const { OnceLock::new() }; 3];

/// Loads the course in a language; `None` if it cannot be fetched.
pub async fn load(locale: Locale) -> Option<&'static Book> {
    let (place, name) = match locale {
        Locale::En => (0, "courseen"),
        Locale::ZhCn => (1, "coursezhcn"),
        Locale::ZhTw => (2, "coursezhtw"),
    };
    if let Some(book) = BOOKS[place].get() {
        return Some(book);
    }
    let book = Book::read(&published(name).await?)?;
    Some(BOOKS[place].get_or_init(|| book))
}

/// Shows the course in a language once it is loaded.
pub fn follow(state: CourseState, locale: Locale) {
    state.wanted.set_value(Some(locale));
    spawn_local(async move {
        let book = load(locale).await;
        // The reader may have left or chosen another language in the meantime.
        if state.wanted.try_get_value().flatten() == Some(locale) {
            state.failed.set(book.is_none());
            state.book.set(book);
        }
    });
}
