//! Tests on recordings written by hand: reading, internal memory of kernels, and errors.

mod hostile;
mod inside;
mod measured;
mod sizes;
mod steps;
mod text;

use text::Text;

use super::{RecordedRun, RecordingError, read};

/// Reads the run of a text.
fn run(text: &Text) -> RecordedRun {
    read(text.all().as_bytes(), None).unwrap_or_else(|error| panic!("{error}\n{}", text.all()))
}

/// Returns the error of a text that is not a valid recording.
fn refused(text: &str) -> RecordingError {
    match read(text.as_bytes(), None) {
        Ok(_) => panic!("it was read:\n{text}"),
        Err(error) => error,
    }
}

/// Returns the bytes of the last step's allocations, in order.
fn born(run: &RecordedRun) -> Vec<u64> {
    let step = run.steps.last().expect("a step");
    let allocations = run.events[step.begin..step.end].iter().filter(|event| event.is_alloc());
    allocations
        .map(|event| run.log.allocations[event.storage() as usize].bytes)
        .collect()
}
