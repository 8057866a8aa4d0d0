//! Steps with optimizers that came later, Muon and torchao's, against measurements on an H100: peaks, and each allocation of the
//! second update.

use std::fmt::Write as _;
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;
use vramscope_engine::simulate::record;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model, Setup, simulate};
use vramscope_tests::events::phases;
use vramscope_tests::{kept, ledger};

const FILE: &str = "data/truth/optimizers.jsonl.gz";
const TABLE: &str = "tests/data/optimizers_vs_predicted.md";

/// A measured run.
#[derive(Debug, Deserialize)]
struct Row {
    case: Value,
    config: Value,
    params: u64,
    steady: Marks,
    peak_steady: u64,
    reserved_peak: u64,
    /// Sizes that the second update asked of the allocator, frees negative.
    update: Vec<i64>,
}

#[derive(Debug, Deserialize)]
struct Marks {
    end: u64,
    peak_optimizer: u64,
}

fn rows() -> Vec<Row> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("a part of the repository");
    GzDecoder::new(file).read_to_string(&mut text).expect("it is a text");
    // The first line says where it was measured.
    text.lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect()
}

impl Row {
    fn read(&self) -> (Model, Setup) {
        let case = Case::from_json(&self.case.to_string())
            .expect("a case")
            .expect("of a setup");
        let model = Model::from_config_for(&self.config.to_string(), &case.setup).expect("a model");
        (model, case.setup)
    }

    /// The run as the ledger has it.
    fn run(&self) -> ledger::Run {
        let (model, setup) = self.read();
        let report = simulate(&model, &setup);
        ledger::Run::of(&self.case, (self.peak_steady, self.reserved_peak), report.as_ref())
    }

    /// Relative errors of [`FIGURES`].
    fn errors(&self) -> [f64; 4] {
        let (model, setup) = self.read();
        let report = simulate(&model, &setup).unwrap_or_else(|error| panic!("{error}: {}", self.case));
        assert_eq!(report.params, self.params, "{}", self.case);
        let pairs = [
            (report.steady.peak(), self.peak_steady),
            (report.steady.peak_optimizer, self.steady.peak_optimizer),
            (report.steady.end, self.steady.end),
            (report.peak_reserved, self.reserved_peak),
        ];
        pairs.map(|(predicted, measured)| predicted.get() as f64 / measured as f64 - 1.0)
    }

    /// Sizes that the simulated update allocates, in order, without clipping's.
    fn made(&self) -> Vec<i64> {
        let (model, setup) = self.read();
        let run = record(&model, &Setup { clip: false, ..setup }, Gpu::H200);
        let (_, sizes) = phases(&run.log, &run.steady)
            .into_iter()
            .find(|(phase, _)| *phase == "optimizer")
            .expect("a step has an update");
        sizes
    }
}

/// Names of the figures that are compared.
const FIGURES: [&str; 4] = ["peak", "peak of the update", "end", "reserved"];

/// Updates are held to what was recorded allocation by allocation below; what else is live differs a little.
#[test]
fn updates_peak_where_they_are_predicted() {
    for row in rows() {
        let [_, update, ..] = row.errors();
        assert!(update.abs() < 0.003, "{update} {}", row.case);
    }
}

#[test]
fn updates_allocate_what_was_recorded() {
    for row in rows() {
        let allocations = |sizes: Vec<i64>| -> Vec<i64> { sizes.into_iter().filter(|size| *size > 0).collect() };
        assert_eq!(allocations(row.made()), allocations(row.update.clone()), "{}", row.case);
    }
}

#[test]
fn the_kept_table_of_optimizers_is_todays() {
    let mut out = String::from(
        "# Steps with Muon and torchao's optimizers against their prediction\n\nRandom configurations of a few layers, each \
         measured alone in its process on an H100 (PyTorch 2.11; `tests/data/truth/compiled.py`). Made by `cargo xtask \
         table`.\n\n",
    );
    let _ = writeln!(
        out,
        "| case | {} |\n| --- | --- | --- | --- | --- |",
        FIGURES.join(" | ")
    );
    for row in rows() {
        let case: Vec<String> = ["model", "optim", "precision", "freeze", "batch", "seq"]
            .iter()
            .filter_map(|key| row.case.get(key).map(|value| value.to_string().replace('"', "")))
            .collect();
        let figures = row.errors().map(|error| format!("{:+.4}%", error * 100.0));
        let _ = writeln!(out, "| {} | {} |", case.join(" "), figures.join(" | "));
    }
    kept::hold(TABLE, &out);
    ledger::hold("optimizers", rows().iter().map(Row::run));
}
