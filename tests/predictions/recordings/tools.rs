//! Compares steps of small models that ms-swift and LLaMA-Factory trained without a GPU (`vramscope dry-run --steps 3`) with
//! the simulated ones, by how far live bytes rise and what is left at the end of a step.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;
use vramscope_engine::recording;
use vramscope_engine::simulate::record;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model};
use vramscope_tests::events::sizes;

/// Highest rise of live bytes over a step.
fn rise(sizes: &[i64]) -> i64 {
    let live = sizes.iter().scan(0, |live, size| {
        *live += size;
        Some(*live)
    });
    live.max().unwrap_or_default()
}

#[test]
fn steps_of_tools_rise_as_far_as_the_simulated_ones() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/recordings/tools");
    let cases = fs::read_to_string(folder.join("cases.jsonl")).unwrap();
    let mut wrong = Vec::new();
    for line in cases.lines() {
        let given: Value = serde_json::from_str(line).unwrap();
        let name = given["name"].as_str().unwrap();
        let within = given["within_percent"].as_f64().unwrap();
        let case = Case::from_json(&given["case"].to_string()).unwrap().unwrap();
        let model = Model::from_config_for(&given["config"].to_string(), &case.setup).unwrap();
        let simulated = record(&model, &case.setup, Gpu::H200);
        assert!(simulated.failure.is_none(), "{name}: {:?}", simulated.failure);
        let file = File::open(folder.join(format!("{name}.vram.gz"))).unwrap();
        let recorded = recording::read(BufReader::new(GzDecoder::new(file)), None).unwrap();
        let ours = rise(&sizes(&simulated.log, &simulated.steady.events));
        let theirs = rise(&sizes(recorded.log(), &recorded.last_step().events));
        let off = 100.0 * (ours as f64 / theirs as f64 - 1.0);
        if off.abs() > within {
            wrong.push(format!("{name}: {ours} for {theirs}, {off:+.3}%"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
