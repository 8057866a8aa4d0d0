//! The user's entries as text, by key.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Key;

/// Entries of the user as text, valid or not, so that no input is ever lost.
///
/// A key that holds its default is not stored, so that equal setups have equal URLs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Draft(BTreeMap<Key, String>);

impl Draft {
    /// Returns the text of a key, or its default.
    pub fn get(&self, key: impl Into<Key>) -> &str {
        let key = key.into();
        self.0.get(&key).map_or(key.default_text(), String::as_str)
    }

    /// Sets the text of a key.
    pub fn set(&mut self, key: impl Into<Key>, text: impl Into<String>) {
        let (key, text) = (key.into(), text.into());
        if text == key.default_text() {
            self.0.remove(&key);
        } else {
            self.0.insert(key, text);
        }
    }

    /// Returns true if the key differs from its default.
    pub fn has(&self, key: impl Into<Key>) -> bool {
        self.0.contains_key(&key.into())
    }

    /// Returns a copy with the entries of matching keys only.
    pub fn only(&self, keys: impl Fn(Key) -> bool) -> Self {
        let mut only = Self::default();
        // `collect` would sort: with a sort of its own, 3 KB uncompressed.
        for (key, text) in self.0.iter().filter(|(key, _)| keys(**key)) {
            only.0.insert(*key, text.clone());
        }
        only
    }

    /// Replaces all matching keys by their values in `setup`, including its defaults.
    pub fn take(&mut self, setup: &Self, keys: impl Fn(Key) -> bool) {
        self.0.retain(|key, _| !keys(*key));
        self.0.extend(setup.only(keys).0);
    }

    /// Keys whose texts differ between two drafts, in order.
    pub fn changed(&self, other: &Self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.0.keys().chain(other.0.keys()).copied().collect();
        keys.retain(|key| self.0.get(key) != other.0.get(key));
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Iterates over the keys that differ from their defaults, in order.
    pub fn entries(&self) -> impl Iterator<Item = (Key, &str)> {
        self.0.iter().map(|(k, v)| (*k, v.as_str()))
    }
}
