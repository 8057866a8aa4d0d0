//! The ledger: measured runs beside their predictions, each source kept as a file of `data/ledger`.
//!
//! The tests that compare measurements with today's engine write these files beside their tables, from the same rows; the page
//! of the manual is made of them alone, so that no run is simulated twice.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use vramscope_engine::Report;

use crate::kept;

/// A measured run and its prediction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The case in words, the model first.
    pub run: String,
    /// Highest bytes in tensors of a steady step: measured, and predicted unless it is refused.
    pub peak: (u64, Option<u64>),
    /// Highest bytes that the allocator took, likewise; 0 where they were not measured.
    pub reserved: (u64, Option<u64>),
    /// Why nothing is predicted.
    pub refused: Option<String>,
}

impl Run {
    /// A case that was measured, and the engine's report on it or its refusal.
    pub fn of<E: ToString>(case: &Value, (peak, reserved): (u64, u64), report: Result<&Report, E>) -> Self {
        let (predicted, refused) = match report {
            Ok(report) => (Some((report.peak_allocated.get(), report.peak_reserved.get())), None),
            Err(why) => (None, Some(why.to_string())),
        };
        Self {
            run: words(case),
            peak: (peak, predicted.map(|(peak, _)| peak)),
            reserved: (reserved, predicted.map(|(_, reserved)| reserved)),
            refused,
        }
    }

    /// (predicted − measured) ÷ measured of the peak.
    pub fn error(&self) -> Option<f64> {
        error(self.peak)
    }

    /// The same of the reserved bytes.
    pub fn reserved_error(&self) -> Option<f64> {
        error(self.reserved)
    }

    fn line(&self) -> String {
        let bytes = |bytes: Option<u64>| bytes.map_or_else(String::new, |bytes| bytes.to_string());
        let measured = |bytes: u64| bytes.to_string();
        let cells = [
            self.run.clone(),
            measured(self.peak.0),
            bytes(self.peak.1),
            measured(self.reserved.0),
            bytes(self.reserved.1),
            self.refused.clone().unwrap_or_default(),
        ];
        cells.map(|cell| cell.replace(['\t', '\n', '\r'], " ")).join("\t")
    }

    fn read(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.split('\t').collect();
        let [run, peak, predicted, reserved, reserved_predicted, refused] = cells[..] else {
            return None;
        };
        Some(Self {
            run: run.to_owned(),
            peak: (peak.parse().ok()?, predicted.parse().ok()),
            reserved: (reserved.parse().ok()?, reserved_predicted.parse().ok()),
            refused: (!refused.is_empty()).then(|| refused.to_owned()),
        })
    }
}

fn error((measured, predicted): (u64, Option<u64>)) -> Option<f64> {
    let predicted = predicted.filter(|_| measured > 0)?;
    Some(predicted as f64 / measured as f64 - 1.0)
}

/// Keys of cases that say nothing of memory.
const NOTES: [&str; 3] = ["timed", "seed", "events"];

/// A case in words: the model, then its keys as they were given.
pub fn words(case: &Value) -> String {
    let fields = case.as_object().into_iter().flatten();
    let model = case["model"].as_str().unwrap_or_default().to_owned();
    let others = fields.filter(|(key, _)| *key != "model" && !NOTES.contains(&key.as_str()));
    let others = others.map(|(key, value)| match value.as_str() {
        Some(text) => format!("{key}={text}"),
        None => format!("{key}={value}"),
    });
    std::iter::once(model).chain(others).collect::<Vec<_>>().join(" ")
}

fn path(source: &str) -> String {
    format!("tests/data/ledger/{source}.tsv")
}

const HEAD: &str = "run\tpeak, measured\tpeak, predicted\treserved, measured\treserved, predicted\trefused\n";

/// Compares the kept runs of a source with today's.
///
/// # Panics
/// If they differ; `cargo xtask table` writes them anew.
pub fn hold(source: &str, runs: impl IntoIterator<Item = Run>) {
    let mut out = String::from(HEAD);
    for run in runs {
        let _ = writeln!(out, "{}", run.line());
    }
    kept::hold(&path(source), &out);
}

/// Reads the kept runs of a source.
///
/// # Panics
/// If the file is missing or malformed, since it is part of the repository.
pub fn read(source: &str) -> Vec<Run> {
    let file = root().join(path(source));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines = text.strip_prefix(HEAD).expect("the head of a ledger's file").lines();
    lines
        .map(|line| Run::read(line).unwrap_or_else(|| panic!("{source}: {line}")))
        .collect()
}

/// The repository's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What is known of all sources, `data/ledger/ledger.toml`.
#[derive(Debug, Deserialize)]
pub struct Ledger {
    /// Sources of measured runs, in the order of the page.
    pub source: Vec<Source>,
    /// Tables of `tests/data` that hold no run's memory beside its prediction.
    pub elsewhere: Vec<Elsewhere>,
    /// Runs whose prediction is known to be off.
    pub known_failure: Vec<KnownFailure>,
    /// Figures that others have published.
    pub published: Vec<Published>,
}

/// A source of measured runs.
#[derive(Debug, Deserialize)]
pub struct Source {
    /// Name of its file of runs, without its end.
    pub name: String,
    /// What its runs are.
    pub title: String,
    /// `engine` or `dry run`.
    pub route: String,
    /// The program that ran the steps.
    pub tool: String,
    /// How GPUs shared them.
    pub strategy: String,
    /// Versions of what ran.
    pub versions: String,
    /// The card that it ran on.
    pub card: String,
    /// Where its measurements are, in `tests/data`.
    pub from: String,
    /// The table that shows more of them, in `tests/data`.
    pub table: String,
}

/// A table that is no source.
#[derive(Debug, Deserialize)]
pub struct Elsewhere {
    /// The table, in `tests/data`.
    pub table: String,
    /// What it holds instead.
    pub holds: String,
}

/// A run whose prediction is off by more than [`ALLOWED`].
#[derive(Debug, Deserialize)]
pub struct KnownFailure {
    /// Name of its source.
    pub source: String,
    /// The run, as its source has it.
    pub run: String,
    /// The cause, or that it is not known.
    pub cause: String,
}

/// A figure that others have published.
#[derive(Debug, Deserialize)]
pub struct Published {
    /// Who says so.
    pub by: String,
    /// Where.
    pub source: String,
    /// What is said.
    pub said: String,
    /// GB that are said, as their makers count them.
    pub gb: f64,
    /// The case that comes nearest to what is said.
    pub case: String,
    /// What the case takes for what is not said.
    pub taken: String,
}

/// Largest error of a peak that is no failure.
pub const ALLOWED: f64 = 0.01;

impl Ledger {
    /// Reads it.
    ///
    /// # Panics
    /// If it is missing or malformed, since it is part of the repository.
    pub fn read() -> Self {
        let text = std::fs::read_to_string(root().join("tests/data/ledger/ledger.toml")).expect("the ledger is there");
        toml::from_str(&text).expect("the ledger is read")
    }
}
