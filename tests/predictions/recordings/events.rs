//! Compares the simulated events of a steady step with those that the allocator recorded on an H200: the same sizes in
//! the same order, with the same frees in between.
//!
//! The order of frees between two allocations is not compared: Python frees locals, and autocast its cache, in an order
//! that does not affect the allocator.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;
use vramscope_engine::simulate::{record, record_parallel};
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model};
use vramscope_tests::events::{difference, frees_in_order, phases, sizes};

/// Recordings in which random weights overflow in fp16, so that GradScaler skips the optimizer; later recordings state
/// this themselves.
const SKIPPED: &[&str] = &["blip2-2.7b-ampfp16-sdpa-ckpt-connector"];

#[test]
fn simulated_events_are_the_recorded_ones() {
    let recordings = recordings();
    assert!(recordings.len() >= 290, "only {} recordings", recordings.len());
    let wrong: Vec<String> = recordings.iter().flat_map(|path| compare(path)).collect();
    assert!(wrong.is_empty(), "{} phases differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Compares events of one of several GPUs under tensor parallelism.
#[test]
fn simulated_events_of_one_of_several_are_the_recorded_ones() {
    let recordings = recordings_in("data/recorded/tensor");
    assert_eq!(recordings.len(), 8);
    let wrong: Vec<String> = recordings.iter().flat_map(|path| compare(path)).collect();
    assert!(wrong.is_empty(), "{} phases differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Compares events of a pipeline stage.
#[test]
fn simulated_events_of_a_stage_are_the_recorded_ones() {
    let recordings = recordings_in("data/recorded/pipeline");
    assert_eq!(recordings.len(), 18);
    let wrong: Vec<String> = recordings.iter().flat_map(|path| compare(path)).collect();
    assert!(wrong.is_empty(), "{} phases differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Compares a run from its first weight on: creating the model and its adapters, and three steps.
#[test]
fn simulated_events_of_a_whole_run_are_the_recorded_ones() {
    let recordings = recordings_in("data/recorded/whole");
    assert_eq!(recordings.len(), 7);
    for path in recordings {
        let (name, recorded, case) = read(&path);
        let run = record(&Model::from_case(&case).unwrap(), &case.setup, Gpu::H200);
        let steps = [&run.build, &run.first.events, &run.steady.events, &run.steady.events];
        let ours: Vec<i64> = steps.into_iter().flat_map(|events| sizes(&run.log, events)).collect();
        let theirs: Vec<i64> = serde_json::from_value(recorded["events"].clone()).unwrap();
        assert_eq!(check(name, "run", &ours, &theirs), None);
    }
}

fn recordings() -> Vec<PathBuf> {
    recordings_in("data/recorded")
}

fn recordings_in(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    paths.sort();
    paths
}

/// Name, contents and case of a recording.
fn read(path: &Path) -> (&str, Value, Case) {
    let name = path.file_name().unwrap().to_str().unwrap().trim_end_matches(".json.gz");
    let recorded: Value = serde_json::from_reader(GzDecoder::new(File::open(path).unwrap())).unwrap();
    let case = Case::from_json(&recorded["case"].to_string()).unwrap().unwrap();
    (name, recorded, case)
}

/// Messages about the phases of a recording that differ from what is expected.
fn compare(path: &Path) -> Vec<String> {
    let (name, recorded, case) = read(path);
    let model = Model::from_case(&case).unwrap_or_else(|e| panic!("{name}: {e}"));
    let run = match &case.parallel {
        None => record(&model, &case.setup, Gpu::H200),
        Some(parallel) => record_parallel(&model, &case.setup, parallel, Gpu::H200).unwrap(),
    };
    let skipped = SKIPPED.contains(&name) || recorded.get("skipped").is_some();
    let simulated = phases(&run.log, &run.steady).into_iter();
    simulated
        .filter(|(phase, _)| !(skipped && *phase == "optimizer"))
        .filter_map(|(phase, mut ours)| {
            let mut theirs: Vec<i64> = serde_json::from_value(recorded["steady"][phase].clone()).unwrap();
            if case.parallel.is_some() && phase == "backward" {
                // The measuring program does not divide the loss by the number of micro-batches.
                for sizes in [&mut ours, &mut theirs] {
                    sizes.retain(|size| size.abs() != 4);
                }
            }
            check(name, phase, &ours, &theirs)
        })
        .collect()
}

fn check(name: &str, phase: &str, ours: &[i64], theirs: &[i64]) -> Option<String> {
    let (ours, theirs) = (frees_in_order(ours), frees_in_order(theirs));
    if ours == theirs {
        return None;
    }
    difference(&ours, &theirs).map(|far| format!("{name} {phase}: {far}"))
}
