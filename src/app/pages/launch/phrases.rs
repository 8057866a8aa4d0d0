//! Phrases of launches and comparisons in the page's language.

use crate::i18n::Words;
use crate::launch_words::LaunchWords;
use crate::part::{Text, text};

/// Phrases in the page's language.
#[derive(Debug, Clone, Copy)]
pub struct Phrases(Words);

impl Phrases {
    /// Phrases that follow the page's language.
    pub const fn of(i18n: Words) -> Self {
        Self(i18n)
    }

    /// Phrases of the current language; reactive.
    pub fn now(self) -> &'static LaunchWords {
        LaunchWords::of(self.0.locale())
    }

    /// Text of a phrase without gaps that updates itself when the language changes.
    pub fn live(self, key: &'static str) -> Text {
        text(move || self.now().word(key))
    }
}
