//! Translations: a folder for each language in `locales/`, a file for each subject, checked by the build script.

use std::sync::{Arc, Mutex};

mod generated {
    include!(concat!(env!("OUT_DIR"), "/translations.rs"));
}

pub use generated::i18n::{I18nContextProvider, Locale, use_i18n};
pub use leptos_i18n::{I18nContext, t_string};

/// The context that every component reads its words from.
pub type Words = I18nContext<Locale>;

/// A text that follows the language.
pub type Text = Arc<Mutex<dyn FnMut() -> String + Send>>;

/// A text of this function's; all texts are of one type, so that the page has the code to show one
/// just once.
pub fn text(words: impl FnMut() -> String + Send + 'static) -> Text {
    Arc::new(Mutex::new(words))
}

/// A translation that follows the language: `t!(i18n, subject.key, argument = value)`, where a value
/// may be a view.
macro_rules! t {
    ($i18n:expr, $subject:ident.$key:ident) => {
        $crate::i18n::text(move || $crate::i18n::t_string!($i18n, $subject.$key).to_string())
    };
    ($i18n:expr, $($rest:tt)*) => {
        leptos_i18n::t!($i18n, $($rest)*)
    };
}
pub(crate) use t;
