//! Compares a step of DeepSpeed's engine with recordings of it that were made without a GPU: the same sizes in the same
//! order, with the same frees in between. `tests/recorder/drawn.py` records lines of `cases.jsonl`.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;
use vramscope_engine::recording;
use vramscope_engine::simulate::record_parallel;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model};
use vramscope_tests::events::{difference, frees_in_order, sizes};

#[test]
fn recorded_steps_of_deepspeed_are_the_simulated_ones() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/recordings/deepspeed");
    let cases = fs::read_to_string(folder.join("cases.jsonl")).unwrap();
    let mut wrong = Vec::new();
    for (number, line) in cases.lines().enumerate() {
        let given: Value = serde_json::from_str(line).unwrap();
        let case = Case::from_json(line).unwrap().unwrap();
        let parallel = case.parallel.expect("a strategy");
        let model = Model::from_config_for(&given["config"].to_string(), &case.setup).unwrap();
        let simulated = record_parallel(&model, &case.setup, &parallel, Gpu::H200).unwrap();
        let file = File::open(folder.join(format!("{number}.vram.gz"))).unwrap();
        let recorded = recording::read(BufReader::new(GzDecoder::new(file)), None).unwrap();
        let ours = sizes(&simulated.log, &simulated.steady.events);
        let theirs = sizes(recorded.log(), &recorded.last_step().events);
        let far = difference(&frees_in_order(&ours), &frees_in_order(&theirs));
        wrong.extend(far.map(|far| format!("{number}: {far}")));
    }
    assert!(wrong.is_empty(), "{} steps differ:\n{}", wrong.len(), wrong.join("\n"));
}
