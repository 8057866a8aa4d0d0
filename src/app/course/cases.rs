//! Setups that stand beside the course's figures and measurements.

use serde_json::Value;
use vramscope_engine::units::Bytes;

use super::book::{Block, items, text};
use super::given::Input;
use crate::worker::view::Summary;

/// Result of a setup: its figures, or the reason why it has none.
pub type Outcome = Result<Summary, String>;

/// Results of setups, by query.
#[derive(Debug, Default)]
pub struct Known(Vec<(String, Outcome)>);

impl Known {
    /// Returns the result of a setup, if known.
    pub fn get(&self, query: &str) -> Option<&Outcome> {
        self.0
            .iter()
            .find(|(known, _)| known == query)
            .map(|(_, outcome)| outcome)
    }

    /// Stores the result of a setup.
    pub fn insert(&mut self, query: String, outcome: Outcome) {
        self.0.push((query, outcome));
    }
}

/// A setup of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case<'a> {
    /// Name of the setup.
    pub label: &'a str,
    /// Query of the setup, with the fields' values inserted.
    pub query: String,
    /// Figure that the course prints; empty if it prints none.
    pub printed: &'a str,
    /// Measured peak of allocated bytes.
    pub measured: Option<Bytes>,
}

/// Returns the setups of a block, in order.
pub fn cases<'a>(block: Block<'a>, inputs: &[Input]) -> Vec<Case<'a>> {
    let labels = block.texts("cases").chain(std::iter::repeat(""));
    let all = items(block.data.get("cases")).iter().zip(labels);
    all.map(|(data, label)| Case {
        label,
        query: query(data, inputs),
        printed: text(data, "course"),
        measured: data.get("measured").and_then(Value::as_u64).map(Bytes::new),
    })
    .collect()
}

fn query(case: &Value, inputs: &[Input]) -> String {
    let mut query = text(case, "setup").to_owned();
    for input in inputs {
        let value = input.value.single().unwrap_or_default();
        // Setups take whole numbers only.
        query = query.replace(&format!("{{{}}}", input.name), &format!("{value:.0}"));
    }
    query
}

/// Columns that the table of a block's setups has beside those that each such table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// Figures that the course prints.
    pub printed: bool,
    /// Measurements.
    pub measured: bool,
    /// Verdicts on the card.
    pub verdict: bool,
}

impl Columns {
    /// Columns of a block's table.
    pub fn of(block: Block) -> Self {
        let cases = items(block.data.get("cases"));
        let has = |key: &str| cases.iter().any(|case| case.get(key).is_some());
        Self {
            printed: has("course"),
            measured: has("measured"),
            verdict: block.data.get("verdict").is_some(),
        }
    }

    /// Keys of the words above the columns.
    pub fn heads(self) -> impl Iterator<Item = &'static str> {
        let columns = [
            ("setup", true),
            ("exact", true),
            ("at_peak", true),
            ("holds", true),
            ("course", self.printed),
            ("measured", self.measured),
            ("on_card", self.verdict),
        ];
        columns.into_iter().filter(|(_, shown)| *shown).map(|(key, _)| key)
    }
}
