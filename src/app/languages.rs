//! Languages of the page, from the rows of `vramscope-phrases`.

use vramscope_phrases::{LANGUAGES, Language};

/// A language of the page; by default the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Locale(usize);

impl Locale {
    /// BCP 47 tags of all languages, in the order of the menu.
    pub const TAGS: &'static [&'static str] = &{
        let mut tags = [""; LANGUAGES.len()];
        let mut at = 0;
        while at < tags.len() {
            tags[at] = LANGUAGES[at].tag;
            at += 1;
        }
        tags
    };

    /// All languages, in the order of the menu.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..LANGUAGES.len()).map(Self)
    }

    /// Position in the menu.
    pub const fn index(self) -> usize {
        self.0
    }

    /// BCP 47 tag of the language.
    pub const fn as_str(self) -> &'static str {
        self.row().tag
    }

    /// Name of the language in that language.
    pub const fn own_name(self) -> &'static str {
        self.row().name
    }

    /// Units of large counts, the largest first; those of English if there are none.
    pub const fn units(self) -> &'static [(&'static str, f64)] {
        self.row().units
    }

    /// Finds a language by its tag.
    pub fn named(tag: &str) -> Option<Self> {
        Self::all().find(|language| language.as_str() == tag)
    }

    /// Maps a browser's language tag to a language of the page: by the first subtag, then by one that only a single
    /// language has.
    pub fn closest(tag: &str) -> Option<Self> {
        let tag = tag.to_ascii_lowercase();
        let parts: Vec<&str> = tag.split('-').collect();
        let is_alike = |language: &Self| language.as_str().split('-').next() == parts.first().copied();
        let is_meant = |language: &Self| language.row().subtags.iter().any(|own| parts.contains(own));
        let mut alike = Self::all().filter(is_alike);
        let first = alike.next()?;
        std::iter::once(first).chain(alike).find(is_meant).or(Some(first))
    }

    const fn row(self) -> &'static Language {
        &LANGUAGES[self.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_browsers_are_those_of_the_closest_language() {
        let closest = |tag| Locale::closest(tag).map(Locale::as_str);
        for (tag, language) in [
            ("en-GB", "en"),
            ("zh", "zh-CN"),
            ("zh-SG", "zh-CN"),
            ("zh-Hans-HK", "zh-CN"),
            ("zh-TW", "zh-TW"),
            ("zh-Hant", "zh-TW"),
            ("zh-HK", "zh-TW"),
            ("ZH-mo", "zh-TW"),
        ] {
            assert_eq!(closest(tag), Some(language), "{tag}");
        }
        assert_eq!(closest("fr"), None);
        assert_eq!(Locale::default().as_str(), "en");
    }

    #[test]
    fn every_language_is_found_by_its_tag() {
        for language in Locale::all() {
            assert_eq!(Locale::named(language.as_str()), Some(language));
        }
        assert_eq!(Locale::named(""), None);
    }
}
