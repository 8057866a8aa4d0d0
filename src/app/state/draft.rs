use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Key;

/// What the person entered, as text, right or wrong: nothing entered is ever lost.
///
/// A key that holds its default is not stored, so that equal setups have equal URLs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Draft(BTreeMap<Key, String>);

impl Draft {
    /// The text of a key, or its default.
    pub fn get(&self, key: Key) -> &str {
        self.0.get(&key).map_or(key.default_text(), String::as_str)
    }

    /// Enters a text.
    pub fn set(&mut self, key: Key, text: impl Into<String>) {
        let text = text.into();
        if text == key.default_text() {
            self.0.remove(&key);
        } else {
            self.0.insert(key, text);
        }
    }

    /// Whether the key differs from its default.
    pub fn has(&self, key: Key) -> bool {
        self.0.contains_key(&key)
    }

    /// The same, with entries of these keys alone.
    pub fn only(&self, keys: impl Fn(Key) -> bool) -> Self {
        let kept = self.0.iter().filter(|(key, _)| keys(**key));
        Self(kept.map(|(key, text)| (*key, text.clone())).collect())
    }

    /// Enters what `setup` says of each of these keys, its defaults too.
    pub fn take(&mut self, setup: &Self, keys: impl Fn(Key) -> bool) {
        self.0.retain(|key, _| !keys(*key));
        self.0.extend(setup.only(keys).0);
    }

    /// Keys that differ from their default, in order.
    pub fn entries(&self) -> impl Iterator<Item = (Key, &str)> {
        self.0.iter().map(|(k, v)| (*k, v.as_str()))
    }
}
