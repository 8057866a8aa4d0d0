//! Bytes of one of two GPUs under DDP, ZeRO-1 and FSDP2, against two H200.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

use std::path::Path;

use serde_json::Value;
use vramscope_engine::format;
use vramscope_engine::simulate::simulate_parallel;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model, Report};
use vramscope_tests::kept;
use vramscope_tests::measured::Statistics;

const TABLE: &str = "tests/data/data_parallel_vs_predicted.md";

const HEAD: &str = "\
# Two GPUs: measured against predicted

Every case of `truth/data_parallel.jsonl`, one of two NVIDIA H200, against `vramscope estimate` of the same case: the
third step, and the highest reserved bytes of the run. Errors are (predicted − measured) ÷ measured.

`data_parallel.py` times collectives before the cases, and its last two tensors, 1 GiB and 512 MiB, stay alive
through all of them (`x` and `y` in `main`). They are no part of training: the measured figures are without them.

In one row the peak is 7.5% higher than predicted: two sets of buckets live there in the third step, the one that the
second step cut anew and the one before, for as long as a work of NCCL holds it. In the same row of another model and
in all other rows it is gone by then. The reserved bytes of DDP are predicted without that second set.
Made by `cargo xtask table`; a test compares it with today's engine.

";

/// Bytes of the tensors of the measuring program.
const COLLECTIVES: u64 = (1 << 30) + (1 << 29);

const PHASES: [&str; 7] = [
    "before_forward",
    "after_forward",
    "peak_forward",
    "after_backward",
    "peak_backward",
    "peak_optimizer",
    "end",
];

struct Row {
    case: Case,
    measured: Value,
    report: Report,
}

impl Row {
    fn read(line: &str) -> Option<Self> {
        let case = Case::from_json(line).expect("a case is read")?;
        let measured: Value = serde_json::from_str(line).expect("a line is JSON");
        let parallel = case.parallel.expect("a case names its strategy");
        let model = Model::from_case(&case).expect("the model is known");
        let report = simulate_parallel(&model, &case.setup, &parallel, Gpu::H200);
        Some(Self {
            report: report.expect("the case is simulated"),
            measured,
            case,
        })
    }

    fn errors(&self) -> [f64; 9] {
        let error = |predicted: u64, measured: &Value| {
            let measured = (measured.as_u64().expect("bytes") - COLLECTIVES) as f64;
            (predicted as f64 - measured) / measured
        };
        let (steady, measured) = (&self.report.steady, &self.measured);
        let predicted = [
            steady.before_forward,
            steady.after_forward,
            steady.peak_forward,
            steady.after_backward,
            steady.peak_backward,
            steady.peak_optimizer,
            steady.end,
        ];
        let mut errors = [0.0; 9];
        for (at, (phase, bytes)) in PHASES.into_iter().zip(predicted).enumerate() {
            errors[at] = error(bytes.get(), &measured["steady"][phase]);
        }
        errors[7] = error(self.report.peak_allocated.get(), &measured["peak_steady"]);
        errors[8] = error(self.report.peak_reserved.get(), &measured["reserved_peak"]);
        errors
    }
}

fn rows() -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/truth/data_parallel.jsonl");
    let text = std::fs::read_to_string(path).expect("the rows are there");
    text.lines().filter_map(Row::read).collect()
}

fn render(rows: &[Row]) -> String {
    let mut out = HEAD.to_owned();
    out +=
        "| case | before fwd | after fwd | peak fwd | after bwd | peak bwd | peak opt | end | **peak** | reserved |\n";
    out += "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n";
    for row in rows {
        let parallel = row.case.parallel.unwrap_or_default();
        let words = format!(
            "{:?}{}{}",
            parallel.strategy,
            told(parallel.mp, "mp"),
            told(parallel.offload, "offload")
        );
        let setup = &row.case.setup;
        let errors = row.errors().map(format::error).join(" | ");
        out += &format!(
            "| **{}** {words} batch={} seq={} {:?} {:?} | {errors} |\n",
            row.case.model, setup.batch, setup.seq, setup.precision, setup.optim
        );
    }
    out
}

fn told(given: bool, word: &str) -> String {
    if given { format!(" {word}") } else { String::new() }
}

fn of(rows: &[Row], figure: usize) -> Statistics {
    let errors: Vec<f64> = rows.iter().map(|row| row.errors()[figure]).collect();
    Statistics::of(&errors).expect("there are rows")
}

#[test]
fn the_peak_of_each_gpu_is_the_measured_one() {
    let peak = of(&rows(), 7);
    assert_eq!(peak.count, 13);
    assert!(peak.median <= 0.0005, "median {}", peak.median);
    assert!(peak.p90 <= 0.005, "90th percentile {}", peak.p90);
}

#[test]
fn every_phase_is_the_measured_one() {
    let rows = rows();
    for (figure, phase) in PHASES.into_iter().enumerate() {
        assert!(of(&rows, figure).median <= 0.001, "{phase}");
    }
}

#[test]
fn what_fsdp_reserves_is_what_was_measured() {
    let rows = rows();
    let sharded = rows.iter().filter(|row| {
        let parallel = row.case.parallel.unwrap_or_default();
        parallel.strategy.shards_parameters()
    });
    let errors: Vec<f64> = sharded.map(|row| row.errors()[8].abs()).collect();
    assert_eq!(errors.len(), 7);
    assert!(errors.iter().all(|error| *error < 0.01), "{errors:?}");
}

#[test]
fn the_kept_table_is_todays() {
    kept::hold(TABLE, &render(&rows()));
}
