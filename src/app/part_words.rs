//! Phrases that only one part of the page shows: the part's own code contains them, so that a first visit does not fetch
//! them.

/// Files of a language: its tag, phrases by key, phrases by their English text.
macro_rules! files {
    ($tag:literal, $folder:literal, $texts:literal) => {
        (
            $tag,
            include_str!(concat!("locales/", $tag, "/", $folder, "/words.json")),
            include_str!(concat!("locales/", $tag, "/", $folder, "/", $texts, ".json")),
        )
    };
}

/// Declares the phrases of a part, `NAME of FOLDER and TEXTS`: those of `locales/LANGUAGE/FOLDER/words.json` by key, and
/// those of `TEXTS.json` by their English text.
///
/// Each part has a type of its own, since it is what a part names that its code contains.
macro_rules! part_words {
    ($(#[$about:meta])* $name:ident of $folder:literal and $texts:literal) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        pub struct $name {
            words: std::collections::BTreeMap<String, String>,
            texts: std::collections::BTreeMap<String, String>,
        }

        impl $name {
            /// Phrases of a language.
            pub fn of(locale: $crate::languages::Locale) -> &'static Self {
                use std::sync::OnceLock;
                use $crate::languages::Locale;
                const FILES: [(&str, &str, &str); Locale::TAGS.len()] = [
                    $crate::part_words::files!("en", $folder, $texts),
                    $crate::part_words::files!("zh-CN", $folder, $texts),
                    $crate::part_words::files!("zh-TW", $folder, $texts),
                ];
                static READ: [OnceLock<$name>; Locale::TAGS.len()] = [const { OnceLock::new() }; Locale::TAGS.len()];
                READ[locale.index()].get_or_init(|| {
                    let files = FILES.iter().find(|(tag, ..)| *tag == locale.as_str());
                    let read = |text: &str| serde_json::from_str(text).unwrap_or_default();
                    files.map_or_else(Self::default, |(_, words, texts)| Self {
                        words: read(words),
                        texts: read(texts),
                    })
                })
            }

            /// Text of a phrase with values for its gaps, by name.
            pub fn say(&self, key: &str, values: &[(&str, &str)]) -> String {
                vramscope_phrases::fill_by_name(self.words.get(key).map_or(key, String::as_str), values)
            }

            /// Text of a phrase without gaps.
            pub fn word(&self, key: &str) -> String {
                self.say(key, &[])
            }

            /// An English text in this language; itself if there is none.
            pub fn text<'a>(&'a self, english: &'a str) -> &'a str {
                self.texts.get(english).map_or(english, String::as_str)
            }
        }
    };
}

pub(crate) use {files, part_words};
