//! Compares steps of transformers' Trainer and of TRL's on one of two GPUs with recordings that were made without a GPU
//! (`vramscope record --world 2 --steps 3`): the same sizes in the same order, with the same frees in between.

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

/// Bytes of the smallest tensors that are compared: a trainer logs scalars, and numbers of a few samples, that the engine
/// leaves out.
const LEAST: i64 = 40;

#[test]
fn recorded_steps_of_trainers_on_two_gpus_are_the_simulated_ones() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/recordings/two_gpus");
    let cases = fs::read_to_string(folder.join("cases.jsonl")).unwrap();
    let mut wrong = Vec::new();
    for (number, line) in cases.lines().enumerate() {
        let given: Value = serde_json::from_str(line).unwrap();
        let case = Case::from_json(&given["case"].to_string()).unwrap().unwrap();
        let parallel = case.parallel.expect("a strategy");
        let model = Model::from_config_for(&given["config"].to_string(), &case.setup).unwrap();
        let simulated = record_parallel(&model, &case.setup, &parallel, Gpu::H200).unwrap();
        let file = File::open(folder.join(format!("{number}.vram.gz"))).unwrap();
        let recorded = recording::read(BufReader::new(GzDecoder::new(file)), None).unwrap();
        let large = |sizes: Vec<i64>| -> Vec<i64> { sizes.into_iter().filter(|size| size.abs() >= LEAST).collect() };
        let ours = large(sizes(&simulated.log, &simulated.steady.events));
        let theirs = large(sizes(recorded.log(), &recorded.last_step().events));
        let far = difference(&frees_in_order(&ours), &frees_in_order(&theirs));
        wrong.extend(far.map(|far| format!("{number}: {far}")));
    }
    assert!(wrong.is_empty(), "{} steps differ:\n{}", wrong.len(), wrong.join("\n"));
}
