use serde::{Deserialize, Serialize};

use super::Key;

/// What the person entered, as text, right or wrong: nothing entered is ever lost.
///
/// A key that holds its default is not stored, so that equal setups have equal URLs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Draft(Vec<(Key, String)>);

impl Draft {
    /// The text of a key, or its default.
    pub fn get(&self, key: Key) -> &str {
        self.place(key).map_or(key.default_text(), |at| &self.0[at].1)
    }

    /// Enters a text.
    pub fn set(&mut self, key: Key, text: impl Into<String>) {
        let text = text.into();
        let is_default = text == key.default_text();
        match self.place(key) {
            Ok(at) if is_default => _ = self.0.remove(at),
            Ok(at) => self.0[at].1 = text,
            Err(at) if !is_default => self.0.insert(at, (key, text)),
            Err(_) => (),
        }
    }

    /// Whether the key differs from its default.
    pub fn has(&self, key: Key) -> bool {
        self.place(key).is_ok()
    }

    /// The same, with entries of these keys alone.
    pub fn only(&self, keys: impl Fn(Key) -> bool) -> Self {
        let kept = self.0.iter().filter(|(key, _)| keys(*key));
        Self(kept.cloned().collect())
    }

    /// Enters what `setup` says of each of these keys, its defaults too.
    pub fn take(&mut self, setup: &Self, keys: impl Fn(Key) -> bool) {
        self.0.retain(|(key, _)| !keys(*key));
        for (key, text) in setup.only(keys).0 {
            self.set(key, text);
        }
    }

    /// Where a key stands, or would stand: entries are in the order of their keys.
    fn place(&self, key: Key) -> Result<usize, usize> {
        self.0.binary_search_by_key(&key, |(known, _)| *known)
    }

    /// Keys that differ from their default, in order.
    pub fn entries(&self) -> impl Iterator<Item = (Key, &str)> {
        self.0.iter().map(|(k, v)| (*k, v.as_str()))
    }
}
