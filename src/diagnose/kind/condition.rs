//! Conditions of hypotheses and of lines: facts, their absence, and versions.

use serde::{Deserialize, Deserializer, de};

use crate::facts::{Fact, Facts};

/// A condition: `a|b` holds if one of the alternatives does. An alternative is a fact, `!` and a fact, or a version:
/// `ms-swift>=4.4`, `torch<2.5`.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition(Vec<Alternative>);

#[derive(Debug, Clone, PartialEq)]
enum Alternative {
    Is(Fact),
    IsNot(Fact),
    AtLeast(String, String),
    Below(String, String),
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// Names the fact that is not known.
    pub fn parse(text: &str) -> Result<Self, String> {
        text.split('|')
            .map(|part| Alternative::parse(part.trim()))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns true if it holds.
    pub fn holds(&self, facts: &Facts) -> bool {
        self.0.iter().any(|alternative| alternative.holds(facts))
    }

    /// Facts whose presence makes it hold.
    pub fn facts(&self) -> impl Iterator<Item = Fact> {
        self.0.iter().filter_map(|alternative| match alternative {
            Alternative::Is(fact) => Some(*fact),
            _ => None,
        })
    }

    /// Tools whose versions it asks for.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|alternative| match alternative {
            Alternative::AtLeast(tool, _) | Alternative::Below(tool, _) => Some(tool.as_str()),
            _ => None,
        })
    }
}

impl Alternative {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some((tool, version)) = text.split_once(">=") {
            return Ok(Self::AtLeast(tool.into(), version.into()));
        }
        if let Some((tool, version)) = text.split_once('<') {
            return Ok(Self::Below(tool.into(), version.into()));
        }
        match text.strip_prefix('!') {
            Some(name) => name.parse().map(Self::IsNot),
            None => text.parse().map(Self::Is),
        }
    }

    fn holds(&self, facts: &Facts) -> bool {
        match self {
            Self::Is(fact) => facts.has(*fact),
            Self::IsNot(fact) => !facts.has(*fact),
            Self::AtLeast(tool, version) => facts.version(tool).is_some_and(|known| !is_below(known, version)),
            Self::Below(tool, version) => facts.version(tool).is_some_and(|known| is_below(known, version)),
        }
    }
}

/// Compares versions number by number; what follows the numbers does not count.
fn is_below(version: &str, other: &str) -> bool {
    let numbers = |text: &str| -> Vec<u32> {
        let parts = text.split(['.', '+', '-']);
        parts.map_while(|part| part.parse().ok()).collect()
    };
    let (mut version, mut other) = (numbers(version), numbers(other));
    let most = version.len().max(other.len());
    version.resize(most, 0);
    other.resize(most, 0);
    version < other
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert!(is_below("4.9.1", "4.10") && !is_below("4.10.0.dev0", "4.10") && is_below("2.5.1+cu124", "2.6"));
        assert!(!is_below("5", "5.0.0"));
    }

    #[test]
    fn a_fact_that_is_not_known_is_an_error() {
        assert!(Condition::parse("oom|!lora|torch<2.1").is_ok());
        assert!(Condition::parse("ooom").expect_err("a typo").contains("ooom"));
    }
}
