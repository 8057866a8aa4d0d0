//! The simulated events of a steady step against those that the allocator recorded on an H200:
//! the same sizes in the same order, and the same frees between them.
//!
//! The order of frees between two allocations is not compared: Python frees locals, and autocast
//! its cache, in an order that changes nothing for the allocator.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;
use vramscope_engine::simulate::{Step, record};
use vramscope_engine::tape::Gpu;
use vramscope_engine::tape::log::Log;
use vramscope_engine::{Case, Model};

/// Phases that are known to differ, and why. A phase that is listed and does not differ fails too.
const EXPLAINED: &[(&str, &str, &str)] = &[
    ("internvl3-1b-fp32-sdpa-ckpt-fused", "backward", WEIGHT_GRADIENT),
    ("blip2-2.7b-ampfp16-sdpa-ckpt-connector", "optimizer", SKIPPED),
    ("qwen2-vl-2b-ampbf16-sdpa-ckpt-sgdm", "forward", ROPE_DELTAS),
    ("qwen2-vl-2b-bf16-lora-ckpt", "forward", ROPE_DELTAS),
    (
        "qwen2.5-vl-3b-ampbf16-eager-ckpt-sgd-vision-frozen",
        "forward",
        ROPE_DELTAS,
    ),
    ("qwen2.5-vl-3b-bf16-eager-adafactortorch", "forward", ROPE_DELTAS),
    ("qwen3-vl-2b-ampbf16-eager-ckpt-sgd", "forward", ROPE_DELTAS),
    ("qwen3-vl-2b-ampfp16-sdpa-ckpt-lora-drop-acc2", "forward", ROPE_DELTAS),
    ("qwen3-vl-2b-bf16-sdpa-fused", "forward", ROPE_DELTAS),
];

const SKIPPED: &str = "random weights overflow in fp16, so GradScaler skips the optimizer in the steps recorded";
const ROPE_DELTAS: &str = "the model keeps 8 bytes a sample from step to step and makes them anew in each";
const WEIGHT_GRADIENT: &str = "cuDNN's workspace for the patch embedding's weight gradient is 208 bytes larger";

#[test]
fn simulated_events_are_the_recorded_ones() {
    let recordings = recordings();
    assert!(recordings.len() >= 40, "only {} recordings", recordings.len());
    let wrong: Vec<String> = recordings.iter().flat_map(|path| compare(path)).collect();
    assert!(wrong.is_empty(), "{} phases differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/recorded");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Messages about the phases of one recording that are not as they should be.
fn compare(path: &Path) -> Vec<String> {
    let name = path.file_name().unwrap().to_str().unwrap().trim_end_matches(".json.gz");
    let recorded: Value = serde_json::from_reader(GzDecoder::new(File::open(path).unwrap())).unwrap();
    let case = Case::from_json(&recorded["case"].to_string()).unwrap().unwrap();
    let model = Model::from_case(&case).unwrap_or_else(|e| panic!("{name}: {e}"));
    if !model.has_forward() {
        return Vec::new();
    }
    let run = record(&model, &case.setup, Gpu::H200);
    let simulated = phases(&run.log, &run.steady);
    simulated
        .into_iter()
        .filter_map(|(phase, ours)| check(name, phase, &ours, &recorded["steady"][phase]))
        .collect()
}

fn check(name: &str, phase: &str, ours: &[i64], recorded: &Value) -> Option<String> {
    let theirs: Vec<i64> = serde_json::from_value(recorded.clone()).unwrap();
    let (ours, theirs) = (frees_in_order(ours), frees_in_order(&theirs));
    let explained = EXPLAINED.iter().any(|(n, p, _)| *n == name && *p == phase);
    match (ours == theirs, explained) {
        (true, false) | (false, true) => None,
        (true, true) => Some(format!("{name} {phase}: no longer differs; take it off the list")),
        (false, false) => {
            let at = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
            let near = |s: &[i64]| format!("{:?}", &s[at.min(s.len())..(at + 4).min(s.len())]);
            Some(format!(
                "{name} {phase}: {} events, {} recorded; from event {at} {} instead of {}",
                ours.len(),
                theirs.len(),
                near(&ours),
                near(&theirs)
            ))
        }
    }
}

/// Births as positive and deaths as negative sizes, by the phases of the recordings.
fn phases(log: &Log, step: &Step) -> [(&'static str, Vec<i64>); 4] {
    let m = step.marks;
    let sizes = |from: usize, to: usize| {
        let size = |e: &vramscope_engine::tape::log::Event| {
            let bytes = log.births[e.storage() as usize].bytes as i64;
            if e.is_birth() { bytes } else { -bytes }
        };
        step.events[from..to].iter().map(size).collect()
    };
    [
        ("forward", sizes(m.before_forward, m.after_forward)),
        ("backward", sizes(m.after_forward, m.after_backward)),
        ("optimizer", sizes(m.after_backward, m.after_optimizer)),
        ("zero_grad", sizes(m.after_optimizer, step.events.len())),
    ]
}

/// Sorts the frees between two allocations.
fn frees_in_order(sizes: &[i64]) -> Vec<i64> {
    let mut out = sizes.to_vec();
    for run in out.chunk_by_mut(|a, b| *a < 0 && *b < 0) {
        run.sort_unstable();
    }
    out
}
