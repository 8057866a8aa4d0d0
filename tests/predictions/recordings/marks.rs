//! Compares the bytes that PyTorch's allocator counted after each phase of a second step, each in a separate process,
//! with the simulation.

use std::fs::{self, File};
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;
use vramscope_engine::{Case, Model, simulate};

/// Number of recordings in which every mark is exact. The others differ in unused remainders of blocks, which depend on
/// the addresses of the segments in the recorded process.
const EXACT_AT_LEAST: usize = 24;

/// A recording in which random weights overflow in fp16, so that GradScaler skips the optimizer: the states of a normal
/// training run never appear.
const SKIPPED: &str = "blip2-2.7b-ampfp16-sdpa-ckpt-connector.json.gz";

/// Largest relative difference of any mark.
const WITHIN: f64 = 0.005;

/// Largest relative difference if weights were quantised while several threads loaded them: the unused remainders of
/// their blocks depend on the order.
const WITHIN_LOADED: f64 = 0.01;

#[test]
fn marks_are_the_recorded_ones() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/recorded");
    let mut exact = 0;
    let mut wrong = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with(SKIPPED) || path.is_dir() {
            continue;
        }
        let recorded: Value = serde_json::from_reader(GzDecoder::new(File::open(&path).unwrap())).unwrap();
        if recorded.get("skipped").is_some() {
            continue;
        }
        let differences = differences(&recorded);
        exact += usize::from(differences.iter().all(|(_, ours, theirs)| ours == theirs));
        let loaded = recorded["case"]["freeze"] == "qlora";
        let within = if loaded { WITHIN_LOADED } else { WITHIN };
        let far = differences
            .into_iter()
            .filter(|(_, ours, theirs)| ours.abs_diff(*theirs) as f64 > within * *theirs as f64);
        wrong.extend(far.map(|(name, ours, theirs)| format!("{path:?} {name}: {ours} instead of {theirs}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(exact >= EXACT_AT_LEAST, "only {exact} recordings agree to the byte");
}

/// Name, simulated and recorded value of each mark.
fn differences(recorded: &Value) -> Vec<(&'static str, u64, u64)> {
    let case = Case::from_json(&recorded["case"].to_string()).unwrap().unwrap();
    let report = simulate(&Model::from_case(&case).unwrap(), &case.setup).unwrap();
    let last = case.setup.accum - 1;
    let mark = |label: &str, column: usize| {
        let marks = recorded["marks"].as_array().unwrap();
        let found = marks
            .iter()
            .find(|m| m[0] == label)
            .unwrap_or_else(|| panic!("no mark {label}"));
        found[column].as_u64().unwrap()
    };
    let micro = |label: &str, column: usize| mark(&format!("step 2 micro {last} {label}"), column);
    let steady = &report.steady;
    vec![
        (
            "after_model",
            report.after_model.get(),
            mark("model (cache emptied)", 1),
        ),
        ("before_forward", steady.before_forward.get(), micro("batch made", 1)),
        ("after_forward", steady.after_forward.get(), micro("forward", 1)),
        (
            "peak_forward",
            steady.peak_forward.get(),
            micro("forward, outputs held", 3).max(micro("forward", 3)),
        ),
        ("after_backward", steady.after_backward.get(), micro("backward", 1)),
        ("peak_backward", steady.peak_backward.get(), micro("backward", 3)),
        ("end", steady.end.get(), mark("step 2 zero_grad", 1)),
    ]
}
