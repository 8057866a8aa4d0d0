//! Arguments given by name.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::fault::Fault;
use super::value::Value;

/// Arguments of an operation by name: few, so that a list finds them faster than a map.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Keywords<'a>(pub Vec<(Cow<'a, str>, Value)>);

impl Keywords<'_> {
    /// Returns an argument; of equal names, the last counts.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// Returns all arguments, in order.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Returns the arguments with their varying numbers replaced by `numbers`.
    pub fn at(&self, numbers: &[i64]) -> Result<Keywords<'static>, Fault> {
        let one = |(name, value): &(Cow<'_, str>, Value)| Ok((Cow::Owned((**name).to_owned()), value.at(numbers)?));
        Ok(Keywords(self.0.iter().map(one).collect::<Result<_, Fault>>()?))
    }

    /// Copies borrowed text, so that the arguments outlive their source.
    pub fn into_owned(self) -> Keywords<'static> {
        let one = |(name, value): (Cow<'_, str>, Value)| (Cow::Owned(name.into_owned()), value);
        Keywords(self.0.into_iter().map(one).collect())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Keywords<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KeywordsVisitor)
    }
}

struct KeywordsVisitor;

impl<'de> Visitor<'de> for KeywordsVisitor {
    type Value = Keywords<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("arguments by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Keywords<'de>, A::Error> {
        let mut keywords = Vec::new();
        while let Some((Name(name), value)) = all.next_entry()? {
            keywords.push((name, value));
        }
        Ok(Keywords(keywords))
    }
}

/// Name of an argument, borrowed where it can be.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
