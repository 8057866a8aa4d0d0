//! Kinds of evidence as data: one file of `kinds/` says what a kind matches, which facts it yields, which hypothesis
//! follows, in what words, with its sources and examples, which the tests read. [CONTRIBUTING](../../../docs/CONTRIBUTING.md) tells how to add one.

mod condition;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::facts::Fact;
use crate::finding::Confidence;

pub use condition::Condition;
pub use text::{Texts, phrases};

/// Every kind, by the name of its file.
static KINDS: LazyLock<BTreeMap<String, Kind>> =
    LazyLock::new(|| serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/kinds.json"))).expect("tested"));

/// All kinds, in the order of their names.
pub fn all() -> &'static BTreeMap<String, Kind> {
    &KINDS
}

/// The kind of a name, with its name; both live as long as the program.
pub fn named(name: &str) -> Option<(&'static str, &'static Kind)> {
    KINDS.get_key_value(name).map(|(name, kind)| (name.as_str(), kind))
}

/// A kind of evidence, and the hypothesis that it speaks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// Row of the course that explains it.
    #[serde(default)]
    pub row: String,
    /// Confidence in the hypothesis if nothing raises or lowers it.
    #[serde(default = "likely", rename = "standing")]
    pub confidence: Confidence,
    /// Order among hypotheses of one confidence: the more specific one is higher.
    #[serde(default)]
    pub rank: u8,
    /// Conditions that all have to hold.
    #[serde(default)]
    pub needs: Vec<Condition>,
    /// Conditions none of which may hold.
    #[serde(default)]
    pub unless: Vec<Condition>,
    /// Conditions any of which speaks for it, and raises it by one degree.
    #[serde(default)]
    pub raised_by: Vec<Condition>,
    /// Conditions each of which speaks against it, and lowers it by one degree.
    #[serde(default)]
    pub lowered_by: Vec<Condition>,
    /// Facts that hold if the hypothesis does.
    #[serde(default)]
    pub yields: Vec<Fact>,
    /// Other hypotheses that this one explains, by name.
    #[serde(default)]
    pub explains: Vec<String>,
    /// True for what holds of most runs: it is said only where nothing likelier is known.
    #[serde(default)]
    pub is_general: bool,
    /// True if code makes the finding, and only the words are here.
    #[serde(default)]
    pub is_computed: bool,
    /// What it looks like in a text.
    #[serde(default)]
    pub sign: Vec<Pattern>,
    /// Values made of captured ones: `total - free`.
    #[serde(default)]
    pub derived: BTreeMap<String, String>,
    /// Words of the finding, by language; empty for a kind that only yields facts.
    #[serde(default)]
    pub words: BTreeMap<String, Texts>,
}

impl Kind {
    /// True for what is worth knowing and explains nothing.
    pub fn is_remark(&self) -> bool {
        self.confidence == Confidence::Note
    }
}

const fn likely() -> Confidence {
    Confidence::Likely
}

/// A pattern in a line and the one below it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// Words one of which the line has, in any case: a search for all of them at once decides which lines are looked at.
    pub anchors: Vec<String>,
    /// Regular expression over the line and the one below, in any case; its named groups are values of the finding.
    #[serde(default)]
    pub regex: Option<String>,
    /// Facts that a match shows.
    #[serde(default)]
    pub yields: Vec<Fact>,
    /// True for a frame or a word that counts beside an error only, if there is one.
    #[serde(default)]
    pub is_near: bool,
    /// True for a line of code: where no traceback stands above it, somebody shows a program, and not where it failed.
    #[serde(default)]
    pub is_code: bool,
}
