//! Steps of transformers' Trainer on two GPUs, as people start it, against measurements on two H200.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;
use vramscope_engine::simulate::simulate_parallel;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model, Report};
use vramscope_tests::{kept, ledger, rows};

const FILE: &str = "data/truth/two_gpus.jsonl";
const TABLE: &str = "tests/data/two_gpus_vs_predicted.md";

/// A measured run of one of the two.
#[derive(Debug, Deserialize)]
struct Row {
    case: Value,
    /// Bytes at the marks of a step after the first.
    steady: Marks,
    peak_steady: u64,
    reserved_peak: u64,
}

#[derive(Debug, Deserialize)]
struct Marks {
    before: u64,
    end: u64,
}

/// A run and its prediction, or the reason for none.
struct Compared {
    row: Row,
    report: Result<Report, String>,
}

/// Names of the figures that are compared.
const FIGURES: [&str; 4] = ["peak", "before", "end", "reserved"];

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
            (steady.end, row.steady.before),
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
    let model = Model::from_case(&case).map_err(|error| error.to_string())?;
    simulate_parallel(&model, &case.setup, &parallel, Gpu::H200).map_err(|error| error.to_string())
}

#[test]
fn steps_of_trainer_on_two_gpus_are_predicted() {
    let rows = Compared::all();
    let mut peaks: Vec<f64> = rows.iter().filter_map(|row| Some(row.errors()?[0].abs())).collect();
    peaks.sort_by(f64::total_cmp);
    assert!(peaks.len() >= PREDICTED, "{} are predicted", peaks.len());
    assert!(peaks[peaks.len() / 2] <= 0.0002, "median {}", peaks[peaks.len() / 2]);
    assert!(peaks.iter().all(|peak| *peak <= 0.005), "{peaks:?}");
    // Blocks of parameters in host memory pass through several streams, and come back when the GPU is done with them.
    let is_offloaded = |row: &&Compared| row.row.case["offload"] == "optimizer,param";
    let reserved = rows
        .iter()
        .filter(|row| !is_offloaded(row))
        .filter_map(Compared::errors);
    let reserved: Vec<f64> = reserved.map(|[.., reserved]| reserved.abs()).collect();
    assert!(reserved.iter().all(|error| *error <= 0.003), "{reserved:?}");
}

/// Fewest runs that are predicted: all of them.
const PREDICTED: usize = 11;

#[test]
fn the_kept_table_of_two_gpus_is_todays() {
    let rows = Compared::all();
    kept::hold(TABLE, &table(&rows));
    ledger::hold("two_gpus", rows.iter().map(Compared::run));
}

fn table(rows: &[Compared]) -> String {
    let mut out = String::from(
        "# Trainer on two GPUs against its prediction\n\ntransformers' Trainer 5.17 started by torchrun on two H200 (PyTorch \
         2.11, accelerate 1.15, DeepSpeed 0.19.8), the first GPU: DDP, DeepSpeed with the sizes that Trainer fills in for \
         \"auto\", FSDP2 as accelerate prepares it. Errors are (predicted − measured) ÷ measured. Made by `cargo xtask \
         table`.\n\n| case | ",
    );
    let _ = writeln!(out, "{} |\n| --- | --- | --- | --- | --- |", FIGURES.join(" | "));
    for row in rows {
        let fields = row.row.case.as_object().into_iter().flatten();
        let words: Vec<String> = fields.filter(|(key, _)| *key != "zero").map(word).collect();
        let figures = match (row.errors(), &row.report) {
            (Some(errors), _) => errors.map(|error| format!("{:+.4}%", error * 100.0)).join(" | "),
            (None, Err(why)) => format!("refused: {why} | | |"),
            (None, Ok(_)) => unreachable!("a report has errors"),
        };
        let _ = writeln!(out, "| {} | {figures} |", words.join(" "));
    }
    out
}

fn word((key, value): (&String, &Value)) -> String {
    match value {
        Value::String(text) if key == "model" => text.clone(),
        Value::String(text) => format!("{key}={text}"),
        other => format!("{key}={other}"),
    }
}
