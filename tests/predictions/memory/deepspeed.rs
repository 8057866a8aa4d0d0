//! Steps of DeepSpeed's engine on one of several GPUs, of random configurations, against measurements on an H100.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;
use vramscope_engine::simulate::simulate_parallel;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model, Report};
use vramscope_tests::{kept, ledger, rows};

const FILE: &str = "data/truth/deepspeed.jsonl.gz";
const TABLE: &str = "tests/data/deepspeed_vs_predicted.md";

/// A measured run.
#[derive(Debug, Deserialize)]
struct Row {
    case: Value,
    config: Value,
    steady: Marks,
    peak_steady: u64,
    reserved_peak: u64,
}

/// Bytes at the marks of a step after the first.
#[derive(Debug, Deserialize)]
struct Marks {
    after_backward: u64,
    end: u64,
}

/// A run and its prediction, or the reason for none.
struct Compared {
    row: Row,
    report: Result<Report, String>,
}

/// Names of the figures that are compared.
const FIGURES: [&str; 4] = ["peak", "after backward", "end", "reserved"];

impl Compared {
    fn all() -> Vec<Self> {
        let rows: Vec<Row> = rows(FILE);
        rows.into_iter()
            .map(|row| Self {
                report: predict(&row),
                row,
            })
            .collect()
    }

    /// The run as the ledger has it.
    fn run(&self) -> ledger::Run {
        let row = &self.row;
        ledger::Run::of(&row.case, (row.peak_steady, row.reserved_peak), self.report.as_ref())
    }

    /// Relative errors of [`FIGURES`].
    fn errors(&self) -> Option<[f64; 4]> {
        let report = self.report.as_ref().ok()?;
        let (row, steady) = (&self.row, &report.steady);
        let pairs = [
            (report.peak_allocated, row.peak_steady),
            (steady.after_backward, row.steady.after_backward),
            (steady.end, row.steady.end),
            (report.peak_reserved, row.reserved_peak),
        ];
        Some(pairs.map(|(predicted, measured)| predicted.get() as f64 / measured as f64 - 1.0))
    }
}

fn predict(row: &Row) -> Result<Report, String> {
    let case = Case::from_json(&row.case.to_string()).map_err(|error| error.to_string())?;
    let case = case.ok_or("an empty case")?;
    let parallel = case.parallel.ok_or("a case without a strategy")?;
    let model = Model::from_config_for(&row.config.to_string(), &case.setup).map_err(|error| error.to_string())?;
    simulate_parallel(&model, &case.setup, &parallel, Gpu::H200).map_err(|error| error.to_string())
}

/// The absolute errors of a figure, the smallest first.
fn sorted(rows: &[Compared], figure: usize) -> Vec<f64> {
    let errors = rows.iter().filter_map(|row| Some(row.errors()?[figure].abs()));
    let mut errors: Vec<f64> = errors.collect();
    errors.sort_by(f64::total_cmp);
    errors
}

/// The error that `percent` of the runs stay within.
fn within(errors: &[f64], percent: usize) -> f64 {
    errors[(errors.len() * percent).div_ceil(100) - 1]
}

#[test]
fn steps_of_deepspeed_are_as_measured_and_the_kept_table_is_todays() {
    let rows = Compared::all();
    let peaks = sorted(&rows, 0);
    assert!(within(&peaks, 50) <= 0.0005, "median {:.5}", within(&peaks, 50));
    assert!(within(&peaks, 95) <= 0.003, "95% {:.5}", within(&peaks, 95));
    kept::hold(TABLE, &table(&rows));
    ledger::hold("deepspeed", rows.iter().map(Compared::run));
}

fn table(rows: &[Compared]) -> String {
    let refused: Vec<&Compared> = rows.iter().filter(|row| row.report.is_err()).collect();
    let mut out = format!(
        "# Steps of DeepSpeed's engine against their prediction\n\nOne GPU of 1 to 64 (PyTorch's fake process group), random \
         configurations of thirteen families, each measured alone in its process on an H100 (PyTorch 2.11, DeepSpeed 0.19.8; \
         `tests/data/truth/configurations.py draw … deepspeed`). {} of {} are predicted; the others are refused by name. \
         Reserved bytes include those that DeepSpeed takes while it starts. Made by `cargo xtask table`.\n\n| figure | median \
         | 95% within | worst |\n| --- | --- | --- | --- |\n",
        rows.len() - refused.len(),
        rows.len()
    );
    for (figure, name) in FIGURES.iter().enumerate() {
        let errors = sorted(rows, figure);
        let [median, most, worst] = [50, 95, 100].map(|percent| 100.0 * within(&errors, percent));
        let _ = writeln!(out, "| {name} | {median:.4}% | {most:.4}% | {worst:.4}% |");
    }
    out += "\n| case | peak | reserved |\n| --- | --- | --- |\n";
    for row in rows {
        let figures = match (row.errors(), &row.report) {
            (Some([peak, _, _, reserved]), _) => format!("{:+.4}% | {:+.2}%", 100.0 * peak, 100.0 * reserved),
            (None, Err(why)) => format!("{why} | "),
            (None, Ok(_)) => String::new(),
        };
        let _ = writeln!(out, "| {} | {figures} |", words(&row.row.case));
    }
    out
}

/// A case in words.
fn words(case: &Value) -> String {
    let fields = case.as_object().into_iter().flatten();
    let shown = fields.filter(|(key, _)| *key != "timed");
    let words: Vec<String> = shown
        .map(|(key, value)| match value {
            Value::String(text) if key == "model" => text.clone(),
            Value::String(text) => format!("{key}={text}"),
            other => format!("{key}={other}"),
        })
        .collect();
    words.join(" ")
}
