//! Compares a simulated step with a recording of it, allocation by allocation:
//!
//! ```text
//! cargo run -p vramscope-engine --example compare_events -- [--step] RECORDING.vram CASE.json [LEAST [NAME]]
//! ```
//!
//! `CASE.json` is a case, as `estimate --case` reads it; a key `config` beside `case` holds the configuration of a model
//! without a name. The variable `AROUND` says how many events are printed around the first difference. With LEAST, tensors of fewer bytes are left out, with NAME those of this name. `zcat` a packed
//! recording first. For each phase, prints how many events differ, and those around the first difference with the operation
//! and the module that made each tensor. With `--step`, all micro-batches of a step are one phase, with the batches that a
//! trainer fetches; scalars are left out unless LEAST is given, since a recording has those that a trainer logs.
//!
//! RECORDING may also be what a GPU's allocator traced of the last step, as `tests/data/truth/recorded.py` compacts it
//! (`.json`). That of a trainer begins behind the batches that it fetches, so that the two are compared from their ends.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

#[path = "shared/events.rs"]
mod events;

use std::error::Error;
use std::fs;
use std::io::BufReader;
use std::process::ExitCode;

use events::{Kept, Row, phases, print_difference, row, rows, sorted};
use serde_json::Value;
use vramscope_engine::recording;
use vramscope_engine::simulate::{Step, record_checked, record_parallel};
use vramscope_engine::tape::Gpu;
use vramscope_engine::tape::log::{Event, Log};
use vramscope_engine::{Case, Model};

/// Bytes of the smallest tensors of a whole step that are compared: scalars, and numbers of a few samples, are smaller.
const LEAST_OF_STEP: u64 = 40;

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let whole = args.first().is_some_and(|arg| arg == "--step");
    args.drain(..usize::from(whole));
    let (recording, case, kept) = match args.as_slice() {
        [recording, case, rest @ ..] if rest.len() < 3 => (recording, case, kept(rest, whole)),
        _ => (&String::new(), &String::new(), None),
    };
    let Some(kept) = kept else {
        eprintln!("usage: compare_events [--step] RECORDING.vram CASE.json [LEAST [NAME]]");
        return ExitCode::from(2);
    };
    match compare(recording, case, (&kept, whole)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Reads which tensors are compared.
fn kept(args: &[String], whole: bool) -> Option<Kept> {
    let usual = if whole { LEAST_OF_STEP } else { 0 };
    Some(Kept {
        least: args.first().map_or(Some(usual), |least| least.parse().ok())?,
        without: args.get(1).map(|name| format!("{name} ")),
    })
}

/// Prints the differences; returns true if there are none.
fn compare(recording: &str, case: &str, (kept, whole): (&Kept, bool)) -> Result<bool, Box<dyn Error>> {
    let given: Value = serde_json::from_str(&fs::read_to_string(case)?)?;
    let case = Case::from_json(&given.get("case").unwrap_or(&given).to_string())?.ok_or("the case is empty")?;
    let model = match given.get("config") {
        Some(config) => Model::from_config_for(&config.to_string(), &case.setup)?,
        None => Model::from_case(&case)?,
    };
    let simulated = match &case.parallel {
        Some(parallel) => record_parallel(&model, &case.setup, parallel, Gpu::H200)?,
        None => record_checked(&model, &case.setup, Gpu::H200)?,
    };
    if let Some(failure) = simulated.failure {
        return Err(failure.into());
    }
    if recording.ends_with(".json") {
        let theirs = sorted(traced(recording)?.into_iter().filter(|row| kept.keeps(row)).collect());
        let ours = rows(&simulated.log, &simulated.steady.events, kept);
        let [theirs, ours] = match case.setup.trainer.is_derived() {
            false => [theirs, ours],
            true => from_the_end([theirs, ours]),
        };
        return Ok(print_difference("step", &theirs, &ours));
    }
    let run = recording::read(BufReader::new(fs::File::open(recording)?), None)?;
    if whole {
        let all = |log: &Log, step: &Step| rows(log, &step.events, kept);
        let (theirs, ours) = (all(run.log(), &run.last_step()), all(&simulated.log, &simulated.steady));
        return Ok(print_difference("step", &theirs, &ours));
    }
    let recorded = phases(run.log(), &run.last_step(), kept);
    let mut equal = true;
    if case.parallel.is_some() {
        // What follows in the recording is the first batch.
        let (mut theirs, ours) = (live(run.log(), run.build()), live(&simulated.log, &simulated.build));
        theirs.truncate(ours.len());
        equal &= print_difference("build", &theirs, &ours);
    }
    for ((phase, theirs), (_, ours)) in recorded.iter().zip(phases(&simulated.log, &simulated.steady, kept)) {
        equal &= print_difference(phase, theirs, &ours);
    }
    Ok(equal)
}

/// A step that a GPU's allocator traced.
fn traced(path: &str) -> Result<Vec<Row>, Box<dyn Error>> {
    let trace: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
    let stacks = trace["stacks"].as_array().ok_or("a trace has `stacks`")?;
    let events = trace["events"].as_array().ok_or("a trace has `events`")?;
    let row = |event: &Value| {
        let stack = event[1].as_u64().and_then(|at| stacks.get(at as usize)?.as_str());
        Some((
            event[0].as_i64()?,
            stack.unwrap_or_default().chars().take(160).collect(),
        ))
    };
    Ok(events.iter().filter_map(row).collect())
}

/// Two sequences of events backwards, the longer one cut to the other's length.
fn from_the_end(mut both: [Vec<Row>; 2]) -> [Vec<Row>; 2] {
    let length = both[0].len().min(both[1].len());
    for rows in &mut both {
        rows.reverse();
        rows.truncate(length);
    }
    both
}

/// What is live after the last of these events, in the order of its allocation.
fn live(log: &Log, events: &[Event]) -> Vec<Row> {
    let mut live: Vec<Event> = Vec::new();
    for event in events {
        if event.is_alloc() {
            live.push(*event);
        } else {
            live.retain(|born| born.storage() != event.storage());
        }
    }
    live.iter().map(|event| row(log, event)).collect()
}
