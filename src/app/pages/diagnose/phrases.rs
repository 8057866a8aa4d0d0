use std::collections::BTreeMap;

use serde::Deserialize;

/// What findings and this page say in the language of the reader; the diagnoser has it.
#[derive(Debug, Clone, Default)]
pub struct Phrases(BTreeMap<String, String>);

/// A phrase and what goes into its gaps.
#[derive(Debug, Clone, Deserialize)]
pub struct Said {
    /// The phrase.
    pub key: String,
    /// In the order of their names.
    pub gaps: Vec<Gap>,
}

/// What goes into a gap.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gap {
    /// The same in every language.
    Text(String),
    /// A phrase by its key.
    Phrase(String),
}

impl Phrases {
    /// Reads what `diagnoser/words.rs` writes.
    pub fn read(json: &str) -> Option<Self> {
        let all: Vec<BTreeMap<String, String>> = serde_json::from_str(json).ok()?;
        Some(Self(all.into_iter().flatten().collect()))
    }

    /// Whether there are none yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A phrase; its key where there is no such phrase.
    pub fn get<'a>(&'a self, key: &'a str) -> &'a str {
        self.0.get(key).map_or(key, String::as_str)
    }

    /// A phrase with texts in its gaps `a`, `b`, `c`, …
    pub fn with<'a>(&self, key: &str, gaps: impl IntoIterator<Item = &'a str>) -> String {
        let mut text = self.get(key).to_owned();
        for (name, gap) in ('a'..).zip(gaps) {
            text = text.replace(&format!("{{{{ {name} }}}}"), gap);
        }
        text
    }

    /// A sentence.
    pub fn say(&self, said: &Said) -> String {
        let gaps = said.gaps.iter().map(|gap| match gap {
            Gap::Text(text) => text.as_str(),
            Gap::Phrase(key) => self.get(key),
        });
        self.with(&said.key, gaps)
    }
}
