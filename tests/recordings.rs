//! Compares recordings made without a GPU with the engine's own tape of the same case: the same sizes in the same
//! order, the same frees in between, and the same bytes at every mark.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;
use vramscope_engine::recording::{self, Run};
use vramscope_engine::simulate::record;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model, simulate};
use vramscope_tests::events::{difference, frees_in_order, phases};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/recordings")
}

fn read(path: &Path) -> Run {
    let file = BufReader::new(GzDecoder::new(File::open(path).unwrap()));
    recording::read(file, None).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// Files of the folder, each with the case that `measure.py` ran while it was recorded.
fn cases() -> Vec<(PathBuf, Case)> {
    let text = fs::read_to_string(folder().join("cases.jsonl")).unwrap();
    let case = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let case = Case::from_json(&line["case"].to_string()).unwrap().unwrap();
        (folder().join(line["file"].as_str().unwrap()), case)
    };
    text.lines().map(case).collect()
}

/// Combines phases into forward, backward, and everything after: a recording marks the end of the optimizer, while the
/// tape marks the end of the scaler around it.
fn passes_and_update(phases: [(&'static str, Vec<i64>); 4]) -> [(&'static str, Vec<i64>); 3] {
    let [forward, backward, (optimizer, mut update), (_, zero_grad)] = phases;
    update.extend(zero_grad);
    [forward, backward, (optimizer, update)]
}

#[test]
fn recorded_steps_are_the_simulated_ones() {
    let cases = cases();
    assert!(cases.len() >= 3);
    let mut wrong = Vec::new();
    for (path, case) in cases {
        let model = Model::from_case(&case).unwrap();
        let (recorded, simulated) = (read(&path), record(&model, &case.setup, Gpu::H200));
        let ours = passes_and_update(phases(recorded.log(), &recorded.last_step()));
        let theirs = passes_and_update(phases(&simulated.log, &simulated.steady));
        for ((phase, ours), (_, theirs)) in ours.into_iter().zip(theirs) {
            let far = difference(&frees_in_order(&ours), &frees_in_order(&theirs));
            wrong.extend(far.map(|far| format!("{path:?} {phase}: {far}")));
        }
        let played = recording::report(recorded).unwrap();
        let expected = simulate(&model, &case.setup).unwrap();
        assert_eq!(played.report.steady, expected.steady, "{path:?}");
        assert_eq!(played.report.peak_allocated, expected.peak_allocated);
        assert_eq!(
            (played.report.params, played.report.trainable),
            (expected.params, expected.trainable)
        );
    }
    assert!(wrong.is_empty(), "{} phases differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Every recording of the folder is readable, and its memory at the peak adds up.
#[test]
fn all_recordings_are_played() {
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_str().is_some_and(|path| path.ends_with(".vram.gz")) {
            continue;
        }
        let report = recording::report(read(&path)).unwrap().report;
        assert!(report.peak_reserved >= report.peak_allocated, "{path:?}");
        assert_eq!(report.breakdown.bytes, report.peak_allocated, "{path:?}");
    }
}
