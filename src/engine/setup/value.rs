//! Types that a setting can have, and how their values are written.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Needs, ParameterNames, Targets};

/// Makes a type that has a word for each of its values (`name`, `named`, `ALL`, `CHOICES`) a setting's value, written as that word.
macro_rules! of_words {
    ($type:ty) => {
        impl $crate::setup::value::Value for $type {
            const KIND: $crate::setup::value::Kind = $crate::setup::value::Kind::Choice(Self::CHOICES);

            fn text(&self) -> String {
                self.name().to_owned()
            }

            fn every() -> Vec<Self> {
                Self::ALL.to_vec()
            }
        }

        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let name = String::deserialize(from)?;
                let unknown = || ::serde::de::Error::unknown_variant(&name, Self::CHOICES.names);
                Self::named(&name).ok_or_else(unknown)
            }
        }
    };
}
pub(super) use of_words;

/// Reads a value that a person writes as one text or as a list.
pub(super) fn of_text_or_list<'de, T, D: Deserializer<'de>>(
    from: D,
    of_text: fn(&str) -> Result<T, String>,
    of_list: fn(Vec<String>) -> Result<T, String>,
) -> Result<T, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Text(String),
        List(Vec<String>),
    }
    // Formats that do not describe themselves can't tell a list from a text; only texts are ever written.
    let given = match from.is_human_readable() {
        true => Given::deserialize(from)?,
        false => Given::Text(String::deserialize(from)?),
    };
    let read = match given {
        Given::Text(text) => of_text(&text),
        Given::List(items) => of_list(items),
    };
    read.map_err(D::Error::custom)
}

/// Form of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Count,
    /// A whole number; may be absent.
    OptionalCount,
    /// Two whole numbers, height by width; may be absent.
    Grid,
    /// Whole numbers; may be none.
    Lengths,
    /// Heights by widths; may be none.
    Sizes,
    /// A number from 0 to 1.
    Probability,
    /// `true` or `false`.
    Switch,
    /// `true` or `false`; if absent, the model's own configuration decides.
    ModelSwitch,
    /// Modules that get LoRA adapters: see [`Targets::parse`].
    Targets,
    /// Patterns of parameters' names; may be none: see [`ParameterNames`].
    ParameterNames,
    /// One of several words.
    Choice(&'static Choices),
}

/// Words of a choice, in the order of its variants.
#[derive(Debug, PartialEq, Eq)]
pub struct Choices {
    /// Words in cases, URLs and flags.
    pub names: &'static [&'static str],
    /// Names that the libraries themselves use, the same in every language; empty if there is none.
    pub titles: &'static [&'static str],
    /// Property that a model must have for the word to apply.
    pub needs: &'static [Needs],
}

impl Choices {
    /// Words that apply to models for which `meets` holds.
    pub fn names_that(&self, meets: impl Fn(Needs) -> bool) -> impl Iterator<Item = &'static str> {
        let all = self.names.iter().zip(self.needs);
        all.filter(move |(_, needs)| meets(**needs)).map(|(name, _)| *name)
    }

    /// Property that a model must have for a word to apply.
    pub fn needs_of(&self, name: &str) -> Needs {
        let at = self.names.iter().position(|known| *known == name);
        at.map_or(Needs::Nothing, |at| self.needs[at])
    }

    /// Name of a word in its library, the same in every language.
    pub fn title_of(&self, name: &str) -> Option<&'static str> {
        let at = self.names.iter().position(|known| *known == name)?;
        Some(self.titles[at]).filter(|title| !title.is_empty())
    }
}

/// A type that a setting can have.
pub trait Value: Clone + PartialEq + Serialize + DeserializeOwned {
    /// Form of the values.
    const KIND: Kind;

    /// The value as a person types it; empty if it is absent.
    fn text(&self) -> String;

    /// Every value, for types that have few.
    fn every() -> Vec<Self> {
        Vec::new()
    }

    /// The whole number, for types that are one; `None` if it is absent.
    fn count(&self) -> Option<u64> {
        None
    }

    /// The value that is this whole number, for types that are one.
    fn of_count(_: u64) -> Option<Self> {
        None
    }
}

impl Value for u64 {
    const KIND: Kind = Kind::Count;

    fn text(&self) -> String {
        self.to_string()
    }

    fn count(&self) -> Option<u64> {
        Some(*self)
    }

    fn of_count(count: u64) -> Option<Self> {
        Some(count)
    }
}

impl Value for Option<u64> {
    const KIND: Kind = Kind::OptionalCount;

    fn text(&self) -> String {
        self.map(|value| value.to_string()).unwrap_or_default()
    }

    fn count(&self) -> Option<u64> {
        *self
    }

    fn of_count(count: u64) -> Option<Self> {
        Some(Some(count))
    }
}

impl Value for Option<[u64; 2]> {
    const KIND: Kind = Kind::Grid;

    fn text(&self) -> String {
        self.as_ref().map(sides).unwrap_or_default()
    }
}

impl Value for Vec<u64> {
    const KIND: Kind = Kind::Lengths;

    fn text(&self) -> String {
        listed(self.iter().map(u64::to_string))
    }
}

impl Value for Vec<[u64; 2]> {
    const KIND: Kind = Kind::Sizes;

    fn text(&self) -> String {
        listed(self.iter().map(sides))
    }
}

impl Value for f64 {
    const KIND: Kind = Kind::Probability;

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    const KIND: Kind = Kind::Switch;

    fn text(&self) -> String {
        self.to_string()
    }

    fn every() -> Vec<Self> {
        vec![false, true]
    }
}

impl Value for Option<bool> {
    const KIND: Kind = Kind::ModelSwitch;

    fn text(&self) -> String {
        self.map_or_else(|| "model".to_owned(), |value| value.to_string())
    }
}

impl Value for Targets {
    const KIND: Kind = Kind::Targets;

    fn text(&self) -> String {
        self.clone().into()
    }

    fn every() -> Vec<Self> {
        Self::WORDS
            .into_iter()
            .filter_map(|word| Self::parse(word).ok())
            .collect()
    }
}

impl Value for ParameterNames {
    const KIND: Kind = Kind::ParameterNames;

    fn text(&self) -> String {
        self.clone().into()
    }
}

fn sides([height, width]: &[u64; 2]) -> String {
    format!("{height}x{width}")
}

fn listed(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}
