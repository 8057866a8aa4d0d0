//! Phrases of the diagnoser in the user's language.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Phrases of findings and of this page in the user's language, supplied by the diagnoser.
#[derive(Debug, Clone, Default)]
pub struct Phrases(BTreeMap<String, String>);

/// A phrase with values for its placeholders.
#[derive(Debug, Clone, Deserialize)]
pub struct Said {
    /// Key of the phrase.
    pub key: String,
    /// Values in the order of the placeholders' names.
    pub gaps: Vec<Gap>,
}

/// Value of a placeholder.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gap {
    /// Text that needs no translation.
    Text(String),
    /// Another phrase, by key.
    Phrase(String),
}

impl Phrases {
    /// Parses the output of `diagnoser/words.rs`.
    pub fn read(json: &str) -> Option<Self> {
        let all: Vec<BTreeMap<String, String>> = serde_json::from_str(json).ok()?;
        Some(Self(all.into_iter().flatten().collect()))
    }

    /// Returns true if no phrases are loaded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a phrase, or the key itself if there is no such phrase.
    pub fn get<'a>(&'a self, key: &'a str) -> &'a str {
        self.0.get(key).map_or(key, String::as_str)
    }

    /// Fills the placeholders `a`, `b`, `c`, … of a phrase.
    pub fn with<'a>(&self, key: &str, gaps: impl IntoIterator<Item = &'a str>) -> String {
        let mut text = self.get(key).to_owned();
        for (name, gap) in ('a'..).zip(gaps) {
            text = text.replace(&format!("{{{{ {name} }}}}"), gap);
        }
        text
    }

    /// Formats a phrase with its values.
    pub fn say(&self, said: &Said) -> String {
        let gaps = said.gaps.iter().map(|gap| match gap {
            Gap::Text(text) => text.as_str(),
            Gap::Phrase(key) => self.get(key),
        });
        self.with(&said.key, gaps)
    }
}
