//! Compares the bytes that PyTorch's allocator counted around evaluation and generation, each in a separate process,
//! with the simulation.

use std::fs::{self, File};
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;
use vramscope_engine::simulate::{Inference, evaluate, generate};
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model};

/// Largest relative difference of a quantity: masks and positions of single tokens are not simulated, and unused
/// remainders of blocks depend on the addresses of segments.
const WITHIN: f64 = 0.01;

/// Largest relative difference of the memory held together with the outputs.
const OUTPUTS_WITHIN: f64 = 0.003;

/// Largest relative difference of the allocated peak.
const PEAK_WITHIN: f64 = 0.005;

#[test]
fn passes_are_the_recorded_ones() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/recorded/passes");
    let mut seen = 0;
    let mut wrong = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let recorded: Value = serde_json::from_reader(GzDecoder::new(File::open(&path).unwrap())).unwrap();
        seen += 1;
        let far = differences(&recorded)
            .into_iter()
            .filter(|(_, within, ours, theirs)| ours.abs_diff(*theirs) as f64 > within * *theirs as f64);
        wrong.extend(far.map(|(name, _, ours, theirs)| format!("{path:?} {name}: {ours} instead of {theirs}")));
    }
    assert!(seen >= 36, "only {seen} recordings");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Name, allowed difference, simulated and recorded value of each quantity.
fn differences(recorded: &Value) -> Vec<(&'static str, f64, u64, u64)> {
    let report = simulated(&recorded["case"]);
    let marks = recorded["marks"].as_array().unwrap();
    let mark = |label: &str, column: usize| {
        let found = marks.iter().find(|m| m[0] == label);
        found.unwrap_or_else(|| panic!("no mark {label}"))[column]
            .as_u64()
            .unwrap()
    };
    let highest = |column: usize| {
        let of_pass = marks.iter().filter(|m| m[0].as_str().unwrap().starts_with("pass"));
        of_pass.map(|m| m[column].as_u64().unwrap()).max().unwrap()
    };
    vec![
        (
            "after_model",
            WITHIN,
            report.after_model.get(),
            mark("model (cache emptied)", 1),
        ),
        ("peak_allocated", PEAK_WITHIN, report.peak_allocated.get(), highest(3)),
        ("peak_reserved", WITHIN, report.peak_reserved.get(), highest(4)),
        (
            "with_outputs",
            OUTPUTS_WITHIN,
            report.with_outputs.get(),
            mark("pass 1 outputs held", 1),
        ),
    ]
}

fn simulated(recorded: &Value) -> Inference {
    let case = Case::from_json(&recorded.to_string()).unwrap().unwrap();
    let model = Model::from_case(&case).unwrap();
    let report = match recorded["new_tokens"].as_u64() {
        Some(tokens) => generate(&model, &case.setup, tokens, Gpu::H200),
        None => evaluate(&model, &case.setup, Gpu::H200),
    };
    report.unwrap_or_else(|e| panic!("{}: {e}", case.model)).figures
}
