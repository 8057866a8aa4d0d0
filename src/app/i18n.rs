//! Translations: a folder for each language in `locales/`, a file for each subject, checked by the build script.

mod generated {
    include!(concat!(env!("OUT_DIR"), "/translations.rs"));
}

pub use generated::i18n::{I18nContextProvider, Locale, use_i18n};
pub use leptos_i18n::{I18nContext, t, t_string};

/// The context that every component reads its words from.
pub type Words = I18nContext<Locale>;
