//! Feeds damaged input to a reader of `diagnose`, or to the simulation, for a given time:
//!
//! ```text
//! cargo run --release -p vramscope-tests --example fuzz -- READER SECONDS [SEED]
//! ```
//!
//! Inputs are valid ones with faults. Pickles and snapshots are also generated, most of them well-formed, so that
//! faults reach the code behind the first opcodes. Every input is read, and its findings are drawn and put into words.
//! Runs (`configurations`) are generated: a configuration of any family with some entries changed, and a setup; each is
//! simulated. Recordings (`recordings`) are read and replayed, those of all sizes at one of their sizes.
//!
//! The program stops at a panic, or at an input for which one of its threads works for more than two seconds (a run: five)
//! or which takes more than a gibibyte (a run: four), and leaves the input in `fuzz-READER.bin`. Without `--release` it
//! does not judge the time. Equal seeds give equal inputs.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

mod configured;
mod mutate;
mod pickled;
mod recorded;
mod seeds;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::DirEntry;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use vramscope_diagnose::pickle::Pickle;
use vramscope_diagnose::{Context, diagnose, read, words};
use vramscope_engine::units::Bytes;

/// Counts what is allocated: a process keeps some of what its threads freed, so that its size is no input's alone.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Longest time for one input. Inputs have a few hundred kilobytes, but a run is simulated as a whole.
fn slowest_allowed(reader: &str) -> Duration {
    Duration::from_secs(if reader == seeds::RUNS { 5 } else { 2 })
}

/// Most memory for one input in KiB. Records of runs are large.
fn most_allowed_kib(reader: &str) -> u64 {
    if reader == seeds::RUNS { 4 << 20 } else { 1 << 20 }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (reader, seconds, seed) = match args.as_slice() {
        [reader, seconds] => (reader, seconds.parse(), Ok(1)),
        [reader, seconds, seed] => (reader, seconds.parse(), seed.parse()),
        _ => return usage(),
    };
    let (Some(seeds), Ok(seconds), Ok(seed)) = (seeds::of(reader), seconds, seed) else {
        return usage();
    };
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut mutator = mutate::Mutator::new(seed, seeds);
    let left = format!("fuzz-{reader}.bin");
    let (mut inputs, mut understood, mut slowest, mut most_held) = (0u64, 0u64, Duration::ZERO, 0);
    let watched = watch(&left, Duration::from_secs(60));
    while Instant::now() < until {
        let input = mutator.next();
        *watched.lock().expect("the watch does not panic") = (Instant::now(), input.clone());
        let (started, before) = (Instant::now(), worked());
        // A thread may still be dropping what the input before made.
        let held_before = HEAP.current_usage();
        HEAP.reset_peak_usage();
        let result = std::panic::catch_unwind(|| feed(reader, &input));
        let took = busiest(&before, &worked()).unwrap_or_else(|| started.elapsed());
        slowest = slowest.max(took);
        let held = HEAP.peak_usage().saturating_sub(held_before) as u64 >> 10;
        most_held = most_held.max(held);
        let Ok(is_understood) = result else {
            return fail(&left, &input, "panicked");
        };
        let is_slow = took > slowest_allowed(reader) && !cfg!(debug_assertions);
        if is_slow || held > most_allowed_kib(reader) {
            return fail(&left, &input, &format!("took {took:?}, {held} KiB held"));
        }
        inputs += 1;
        understood += u64::from(is_understood);
    }
    println!(
        "{reader}: {inputs} inputs in {seconds} s, {understood} understood, slowest {slowest:?}, {most_held} KiB held at most"
    );
    ExitCode::SUCCESS
}

/// Watches the current input: if it takes longer than `most`, saves it and stops the program.
fn watch(left: &str, most: Duration) -> Arc<Mutex<(Instant, Vec<u8>)>> {
    let watched = Arc::new(Mutex::new((Instant::now(), Vec::new())));
    let (seen, left) = (watched.clone(), left.to_owned());
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let (since, input) = &*seen.lock().expect("the program does not panic with it");
            if since.elapsed() > most {
                fail(&left, input, "does not end");
                std::process::exit(1);
            }
        }
    });
    watched
}

fn usage() -> ExitCode {
    eprintln!(
        "usage: fuzz READER SECONDS [SEED]\nreaders: {}",
        seeds::READERS.join(", ")
    );
    ExitCode::from(2)
}

fn fail(left: &str, input: &[u8], why: &str) -> ExitCode {
    std::fs::write(left, input).expect("the input is kept");
    eprintln!("{why}; the input is in {left}");
    ExitCode::FAILURE
}

/// Reads an input; returns true if anything in it was recognised.
fn feed(reader: &str, input: &[u8]) -> bool {
    if reader == seeds::RUNS {
        return configured::feed(input);
    }
    if reader == seeds::RECORDINGS {
        return recorded::feed(input);
    }
    if reader == "pickle" {
        return Pickle::read(input).is_ok_and(|pickle| {
            assert!(pickle.len() <= input.len());
            true
        });
    }
    let Ok(pieces) = read(input) else { return false };
    let context = Context {
        capacity: Some(Bytes::gib(24)),
        ..Context::default()
    };
    for finding in diagnose(&pieces, &context) {
        let said = words::title(&finding.cause, finding.confidence).key.len() + words::evidence(&finding.cause).len();
        assert!(said > 0 && !finding.row().is_empty());
    }
    true
}

/// CPU time of each thread of this process; empty if the system does not report it.
fn worked() -> BTreeMap<OsString, Duration> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of = |thread: DirEntry| {
        let told = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let nanoseconds = told.split_ascii_whitespace().next()?.parse().ok()?;
        Some((thread.file_name(), Duration::from_nanos(nanoseconds)))
    };
    threads.filter_map(of).collect()
}

/// Longest CPU time of a thread between two readings: on a busy machine the wall clock also counts other processes.
fn busiest(before: &BTreeMap<OsString, Duration>, after: &BTreeMap<OsString, Duration>) -> Option<Duration> {
    let since =
        |(thread, now): (&OsString, &Duration)| now.saturating_sub(before.get(thread).copied().unwrap_or_default());
    after.iter().map(since).max()
}
