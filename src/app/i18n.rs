//! Provides the page's phrases in the user's language. `locales/` has a folder per language and a file per subject. The
//! build script checks them and gives each phrase an index. The program holds only these indices; the texts of a
//! language are one file, a line per phrase in the order of the indices, which `src/app/js/boot.js` fetches.

use std::cell::RefCell;

use leptos::prelude::*;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::{JsFuture, spawn_local};

pub use crate::languages::Locale;
use crate::part::{Text, text};

/// Phrases by subject and key.
#[allow(
    missing_docs,
    non_upper_case_globals,
    non_camel_case_types,
    reason = "generated names are the keys of phrases"
)]
pub mod phrases {
    use super::{Filled, PhraseIndex, found};
    include!(concat!(env!("OUT_DIR"), "/phrases.rs"));
}

/// Index of a phrase among those of all subjects.
#[derive(Debug, Clone, Copy)]
pub struct PhraseIndex(usize);

/// Finds a phrase among the sorted keys of its subject, whose first phrase has the index `first`; called by generated
/// code.
fn found(key: &str, keys: &[&str], first: usize) -> Option<PhraseIndex> {
    keys.binary_search(&key).ok().map(|at| PhraseIndex(first + at))
}

/// A phrase with values for its placeholders; the build script generates a type for each such phrase.
pub trait Filled<T> {
    /// Index of the phrase.
    const PLACE: PhraseIndex;

    /// Values for the placeholders, in alphabetical order of their names.
    fn values(self) -> Vec<T>;
}

#[wasm_bindgen]
extern "C" {
    /// Fetches the phrases of a language, one per line; defined in `src/app/js/boot.js`.
    #[wasm_bindgen(js_namespace = vramscope, js_name = phrases)]
    fn fetch(language: &str) -> js_sys::Promise;
}

/// A language with its phrases loaded.
#[derive(Debug, Clone, Copy)]
pub struct Language {
    locale: Locale,
    phrases: &'static [&'static str],
}

impl Language {
    /// Loads a language; returns it at once if it was loaded before.
    ///
    /// # Panics
    /// Panics if the phrases cannot be fetched or belong to another version of the page, as no text can be shown then.
    pub async fn load(locale: Locale) -> Self {
        thread_local!(static LOADED: RefCell<Vec<Language>> = const { RefCell::new(Vec::new()) });
        let known = LOADED.with_borrow(|all| all.iter().copied().find(|l| l.locale == locale));
        if let Some(known) = known {
            return known;
        }
        let text = JsFuture::from(fetch(locale.as_str())).await.ok();
        let text = text.and_then(|text| text.as_string()).unwrap_or_default();
        // Leaked on purpose: any phrase may be on screen as long as the page is open.
        let phrases: &[&str] = text.leak().lines().collect::<Vec<_>>().leak();
        // A failed fetch leaves no line, and another version most likely another number of them.
        assert!(phrases.len() == phrases::COUNT, "the page's words cannot be read");
        let language = Self { locale, phrases };
        LOADED.with_borrow_mut(|all| all.push(language));
        language
    }
}

/// Source of text for all components.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// Language on screen.
    now: RwSignal<Language>,
    /// Language that was asked for last; its phrases may still be loading.
    wanted: StoredValue<Locale>,
}

impl Words {
    /// Provides words in a language to all components below.
    pub fn provide(language: Language) -> Self {
        let words = Self {
            now: RwSignal::new(language),
            wanted: StoredValue::new(language.locale),
        };
        provide_context(words);
        words
    }

    /// Current language; reactive.
    pub fn locale(self) -> Locale {
        self.now.get().locale
    }

    /// Switches to a language once its phrases are loaded, unless another one is asked for in the meantime.
    pub fn speak(self, locale: Locale) {
        if self.wanted.try_update_value(|wanted| std::mem::replace(wanted, locale)) == Some(locale) {
            return;
        }
        spawn_local(async move {
            let language = Language::load(locale).await;
            if self.wanted.try_get_value() == Some(locale) {
                self.now.set(language);
            }
        });
    }

    /// Text of a phrase; reactive.
    pub fn phrase(self, index: PhraseIndex) -> &'static str {
        self.now.get().phrases[index.0]
    }

    /// Text of a phrase with its placeholders filled in; reactive.
    pub fn filled<F: Filled<String>>(self, phrase: F) -> String {
        self.filled_at(F::PLACE, &phrase.values())
    }

    /// Text of a phrase that was found by its name, with values for its placeholders in the order of their names;
    /// reactive.
    pub fn filled_at(self, place: PhraseIndex, values: &[String]) -> String {
        let mut text = String::new();
        pieces(self.phrase(place), &mut |piece| match piece {
            Piece::Text(piece) => text.push_str(piece),
            Piece::Gap(number) => text.extend(values.get(number).map(String::as_str)),
        });
        text
    }

    /// Renders a phrase in the current language with views in place of its placeholders. A view can be in one place
    /// only, so only the first of repeated placeholders shows it.
    pub fn around<F: Filled<AnyView>>(self, phrase: F) -> AnyView {
        let mut values: Vec<_> = phrase.values().into_iter().map(Some).collect();
        let mut views = Vec::new();
        pieces(self.phrase(F::PLACE), &mut |piece| match piece {
            Piece::Text(piece) => views.push(piece.into_any()),
            Piece::Gap(number) => views.extend(values[number].take()),
        });
        views.into_any()
    }

    /// Text of a phrase that updates itself when the language changes.
    pub fn live(self, index: PhraseIndex) -> Text {
        text(move || self.phrase(index).to_owned())
    }
}

/// Part of a phrase.
enum Piece {
    Text(&'static str),
    /// Placeholder, by its number in the alphabetical order of names.
    Gap(usize),
}

/// Splits a phrase at its placeholders, which `cargo xtask build` numbers: `{{ card }}` in `locales/` is `{0}` here.
fn pieces(phrase: &'static str, each: &mut dyn FnMut(Piece)) {
    let mut parts = phrase.split(['{', '}']);
    if let Some(text) = parts.next() {
        each(Piece::Text(text));
    }
    while let (Some(gap), Some(text)) = (parts.next(), parts.next()) {
        each(Piece::Gap(gap.parse().unwrap_or_default()));
        each(Piece::Text(text));
    }
}

/// Returns the [`Words`] that [`Words::provide`] put into the context.
pub fn use_i18n() -> Words {
    expect_context()
}

/// Renders a phrase in a view. `t!(i18n, subject.key)` updates itself when the language changes. `t!(i18n, subject.key,
/// gap = view)` fills placeholders with views, which it consumes, so it does not update itself.
macro_rules! t {
    ($i18n:expr, $subject:ident.$key:ident) => {
        $i18n.live($crate::i18n::phrases::$subject::$key)
    };
    ($i18n:expr, $subject:ident.$key:ident, $($gap:ident = $value:expr),+ $(,)?) => {
        $i18n.around($crate::i18n::phrases::$subject::$key { $($gap: leptos::prelude::IntoAny::into_any($value)),+ })
    };
}
pub(crate) use t;

/// Formats a phrase in the current language: `t_string!(i18n, subject.key)`, or with placeholders, `t_string!(i18n,
/// subject.key, gap = text)`. A variable with the placeholder's name needs no `=`.
macro_rules! t_string {
    ($i18n:expr, $subject:ident.$key:ident) => {
        $i18n.phrase($crate::i18n::phrases::$subject::$key)
    };
    ($i18n:expr, $subject:ident.$key:ident, $($gap:ident $(= $value:expr)?),+ $(,)?) => {
        $i18n.filled($crate::i18n::phrases::$subject::$key {
            $($gap: String::from($crate::i18n::gap_value!($gap $($value)?))),+
        })
    };
}
pub(crate) use t_string;

/// Value of a placeholder: the given expression, or the variable with its name.
macro_rules! gap_value {
    ($gap:ident) => {
        $gap
    };
    ($gap:ident $value:expr) => {
        $value
    };
}
pub(crate) use gap_value;
