//! Loads the course's file of a language.

use std::sync::OnceLock;

use leptos::prelude::*;
use leptos::task::spawn_local;

use super::state::CourseState;
use crate::course::Book;
use crate::fetched::published;
use crate::i18n::Locale;

/// The course in each language, once it is loaded.
static BOOKS: [OnceLock<Book>; Locale::TAGS.len()] = [const { OnceLock::new() }; Locale::TAGS.len()];

/// Loads the course in a language; `None` if it cannot be fetched.
pub async fn load(locale: Locale) -> Option<&'static Book> {
    let place = &BOOKS[locale.index()];
    if let Some(book) = place.get() {
        return Some(book);
    }
    let name = format!("course{}", locale.as_str().to_lowercase().replace('-', ""));
    let book = Book::read(&published(&name).await?)?;
    Some(place.get_or_init(|| book))
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
