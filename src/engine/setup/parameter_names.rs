//! Names of parameters, as regular expressions that are searched in them.

use regex_lite::Regex;
use serde::{Deserialize, Deserializer, Serialize};

use super::value::of_text_or_list;

/// Patterns of parameters' names, such as `model\.visual\.merger\.`: a name is one of these if a pattern is found anywhere
/// in it, as Python's `re.search` has it.
///
/// Names are those of `named_parameters()` in transformers 5.17. No name has a space, so that patterns are written with
/// spaces between them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(into = "String")]
pub struct ParameterNames(Vec<String>);

impl ParameterNames {
    /// Reads patterns with spaces between them.
    ///
    /// # Errors
    /// The first that is no regular expression.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::new(text.split_whitespace().map(String::from).collect())
    }

    /// Takes a list of patterns.
    ///
    /// # Errors
    /// The first that is no regular expression, or has a space.
    pub fn new(patterns: Vec<String>) -> Result<Self, String> {
        let is_good = |pattern: &&String| !pattern.contains(char::is_whitespace) && Regex::new(pattern).is_ok();
        match patterns.iter().find(|pattern| !is_good(pattern)) {
            Some(bad) => Err(format!(
                "`{bad}` is no regular expression; give patterns of parameters' names with spaces between them, such as \
                 `visual\\.merger lm_head`"
            )),
            None => Ok(Self(patterns)),
        }
    }

    /// Returns true if there are no patterns.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names as they were given.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The patterns that are found in none of these names.
    pub(crate) fn unmatched(&self, names: &[String]) -> Vec<String> {
        let is_found = |pattern: &Regex| names.iter().any(|name| pattern.is_match(name));
        let all = self.0.iter().zip(self.compiled());
        all.filter(|(_, pattern)| !is_found(pattern))
            .map(|(text, _)| text.clone())
            .collect()
    }

    /// The patterns, ready to search with.
    pub(crate) fn compiled(&self) -> Vec<Regex> {
        self.0.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
    }
}

impl<'de> Deserialize<'de> for ParameterNames {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        of_text_or_list(from, Self::parse, Self::new)
    }
}

impl From<ParameterNames> for String {
    fn from(names: ParameterNames) -> Self {
        names.0.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_from_text_and_lists() {
        let names = ParameterNames::parse(r" visual\.merger  lm_head ").unwrap();
        let listed: ParameterNames = serde_json::from_str(r#"["visual\\.merger", "lm_head"]"#).unwrap();
        assert_eq!(names, listed);
        assert_eq!(String::from(names.clone()), r"visual\.merger lm_head");
        let found = |name: &str| names.compiled().iter().any(|pattern| pattern.is_match(name));
        assert!(found("model.visual.merger.mlp.0.weight") && found("lm_head.weight"));
        assert!(!found("model.visual_merger.weight"));
    }

    #[test]
    fn what_is_no_pattern_is_named() {
        let error = ParameterNames::parse("lm_head (").unwrap_err();
        assert!(error.contains("`(`"), "{error}");
        assert!(ParameterNames::new(vec!["lm head".into()]).is_err());
    }
}
