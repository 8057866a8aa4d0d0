//! Steps of transformers' Trainer, of random configurations of every family, against measurements on an H100.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;
use vramscope_engine::{Case, Model, Report, simulate};
use vramscope_tests::{kept, ledger, rows};

const FILE: &str = "data/truth/trainer.jsonl.gz";
const TABLE: &str = "tests/data/trainer_vs_predicted.md";

/// A measured run.
#[derive(Debug, Deserialize)]
struct Row {
    case: Value,
    config: Value,
    params: u64,
    /// Bytes at the marks of a steady step.
    steady: Marks,
    peak_steady: u64,
    reserved_peak: u64,
}

#[derive(Debug, Deserialize)]
struct Marks {
    /// After backward and clipping.
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
        let peak = steady.peak_forward.max(steady.peak_backward).max(steady.peak_optimizer);
        let pairs = [
            (peak, row.peak_steady),
            (steady.after_backward, row.steady.after_backward),
            (steady.end, row.steady.end),
            (report.peak_reserved, row.reserved_peak),
        ];
        Some(pairs.map(|(predicted, measured)| predicted.get() as f64 / measured as f64 - 1.0))
    }
}

fn predict(row: &Row) -> Result<Report, String> {
    let case = Case::from_json(&row.case.to_string()).map_err(|error| error.to_string())?;
    let setup = case.ok_or("an empty case")?.setup;
    let model = Model::from_config_for(&row.config.to_string(), &setup).map_err(|error| error.to_string())?;
    simulate(&model, &setup).map_err(|error| error.to_string())
}

/// The absolute errors of a figure, the smallest first.
fn sorted(rows: &[Compared], figure: usize) -> Vec<f64> {
    let mut errors: Vec<f64> = rows
        .iter()
        .filter_map(|row| Some(row.errors()?[figure].abs()))
        .collect();
    errors.sort_by(f64::total_cmp);
    errors
}

/// The error that `percent` of the runs stay within.
fn within(errors: &[f64], percent: usize) -> f64 {
    errors[(errors.len() * percent).div_ceil(100) - 1]
}

#[test]
fn steps_of_trainer_are_predicted() {
    let rows = Compared::all();
    let refused: Vec<&String> = rows.iter().filter_map(|row| row.report.as_ref().err()).collect();
    assert!(refused.iter().all(|why| why.contains("not simulated")), "{refused:?}");
    assert!(rows.len() - refused.len() >= 60, "{refused:?}");
    for row in &rows {
        if let Ok(report) = &row.report {
            assert_eq!(report.params, row.row.params, "{}", row.row.case);
        }
    }
    let peak = sorted(&rows, 0);
    assert!(within(&peak, 50) <= 0.0002, "median {}", within(&peak, 50));
    assert!(within(&peak, 95) <= 0.004, "95% within {}", within(&peak, 95));
}

#[test]
fn the_kept_table_of_trainer_is_todays() {
    let rows = Compared::all();
    kept::hold(TABLE, &table(&rows));
    ledger::hold("trainer", rows.iter().map(Compared::run));
}

fn table(rows: &[Compared]) -> String {
    let mut out = String::from(
        "# Steps of transformers' Trainer 5.17 against their prediction\n\nRandom configurations of every family, each \
         measured alone in its process on an H100 (PyTorch 2.11, accelerate 1.15; `tests/data/truth/configurations.py draw \
         … trainer`). Made by `cargo xtask table`.\n\n| figure | median | 95% within | worst |\n| --- | --- | --- | --- |\n",
    );
    for (figure, name) in FIGURES.iter().enumerate() {
        let errors = sorted(rows, figure);
        let [median, most, worst] = [50, 95, 100].map(|percent| within(&errors, percent) * 100.0);
        let _ = writeln!(out, "| {name} | {median:.4}% | {most:.4}% | {worst:.4}% |");
    }
    out += "\n| case | peak | reserved |\n| --- | --- | --- |\n";
    for row in rows {
        let case: Vec<String> = row.row.case.as_object().into_iter().flatten().map(word).collect();
        let figures = match (row.errors(), &row.report) {
            (Some(errors), _) => format!("{:+.4}% | {:+.4}%", errors[0] * 100.0, errors[3] * 100.0),
            (None, Err(why)) => format!("refused: {why} |"),
            (None, Ok(_)) => unreachable!("a report has errors"),
        };
        let _ = writeln!(out, "| {} | {figures} |", case.join(" "));
    }
    out
}

fn word((key, value): (&String, &Value)) -> String {
    match value.as_str() {
        Some(text) if key == "model" => text.to_owned(),
        Some(text) => format!("{key}={text}"),
        None => format!("{key}={value}"),
    }
}
