//! Finds the row of a decoder whose family is not known, from a recording of it that was made without a GPU:
//!
//! ```text
//! cargo run -p vramscope-engine --example find_row -- RECORDING.vram CASE.json [MODULE...]
//! ```
//!
//! `CASE.json` has the `case`, and the model's `config` beside it, as `compare_events` reads them. Each row of the registry of
//! decoders is tried, then the closest ones with flags changed one at a time, as long as more events of the step are equal.
//! Tensors of the modules are left out: those of `rotary_emb` of a newer transformers, which computes them otherwise.
//! Prints the rows and their changes; if none explains all events, those around the first that differs.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

#[path = "shared/events.rs"]
mod events;

use std::error::Error;
use std::fs;
use std::io::BufReader;
use std::panic::{catch_unwind, set_hook};
use std::process::ExitCode;

use events::{Kept, Row, equal_before, phases, print_difference};
use serde_json::Value;
use vramscope_engine::model::decoder::search::{self, Candidate};
use vramscope_engine::recording;
use vramscope_engine::simulate::record;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model};

/// Rows whose changes are tried.
const ROWS: usize = 4;

/// Events of the phases of a step.
type Phases = [(&'static str, Vec<Row>); 4];

/// All tensors are compared.
const ALL: Kept = Kept {
    least: 0,
    without: None,
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [recording, case, without @ ..] = args.as_slice() else {
        eprintln!("usage: find_row RECORDING.vram CASE.json [MODULE...]");
        return ExitCode::from(2);
    };
    // Most rows do not fit a model, and some of these panic when they run.
    set_hook(Box::new(|_| {}));
    match find(recording, case, without) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Prints the row that is found; returns true if it explains all events.
fn find(recording: &str, case: &str, without: &[String]) -> Result<bool, Box<dyn Error>> {
    let given: Value = serde_json::from_str(&fs::read_to_string(case)?)?;
    let case = Case::from_json(&given["case"].to_string())?.ok_or("the case is empty")?;
    let config = given["config"].to_string();
    let run = recording::read(BufReader::new(fs::File::open(recording)?), None)?;
    let theirs = left(phases(run.log(), &run.last_step(), &ALL), without);
    let total: usize = theirs.iter().map(|(_, rows)| rows.len()).sum();
    let run = |candidate: &Candidate| simulated(&config, &case, candidate).map(|ours| left(ours, without));
    let equal = |candidate: &Candidate| run(candidate).map(|ours| score(&theirs, &ours));

    let rows = search::rows().map(Candidate::of);
    let mut found: Vec<(usize, Candidate)> = rows.filter_map(|row| Some((equal(&row)?, row))).collect();
    found.sort_by_key(|(events, _)| std::cmp::Reverse(*events));
    found.truncate(ROWS);
    for (events, candidate) in &mut found {
        while *events < total {
            let changed = candidate
                .changed()
                .filter_map(|changed| Some((equal(&changed)?, changed)));
            match changed.max_by_key(|(events, _)| *events) {
                Some((more, changed)) if more > *events => (*events, *candidate) = (more, changed),
                _ => break,
            }
        }
    }
    found.sort_by_key(|(events, candidate)| (std::cmp::Reverse(*events), candidate.changes().len()));
    for (events, candidate) in &found {
        println!("{events} of {total} events: {candidate}");
    }
    let (_, best) = found.first().ok_or("no row reads the configuration")?;
    let ours = run(best).ok_or("the row no longer runs")?;
    let mut is_equal = true;
    for ((phase, theirs), (_, ours)) in theirs.iter().zip(&ours) {
        is_equal &= print_difference(phase, theirs, ours);
    }
    Ok(is_equal)
}

/// Events without those of tensors that these modules make.
fn left(phases: Phases, without: &[String]) -> Phases {
    let is_left = |from: &str| !without.iter().any(|module| from.ends_with(&format!(".{module}")));
    phases.map(|(phase, rows)| (phase, rows.into_iter().filter(|(_, from)| is_left(from)).collect()))
}

/// Events of a step as a candidate makes them; `None` if it does not read the configuration, or fails.
fn simulated(config: &str, case: &Case, candidate: &Candidate) -> Option<Phases> {
    let run = || {
        let model: Model = candidate.model(config).ok()?;
        let simulated = record(&model, &case.setup, Gpu::H200);
        match simulated.failure {
            None => Some(phases(&simulated.log, &simulated.steady, &ALL)),
            Some(_) => None,
        }
    };
    catch_unwind(std::panic::AssertUnwindSafe(run)).ok().flatten()
}

/// Equal events before the first difference of each phase. Backward tells little while the forward differs.
fn score(theirs: &Phases, ours: &Phases) -> usize {
    let mut events = 0;
    for ((_, theirs), (_, ours)) in theirs.iter().zip(ours) {
        let equal = equal_before(theirs, ours);
        events += equal;
        if equal < theirs.len() || equal < ours.len() {
            break;
        }
    }
    events
}
