//! Feeds damaged input to a reader of `diagnose`, or to the simulation, for a given time:
//!
//! ```text
//! cargo run --release -p vramscope-tests --example fuzz -- READER SECONDS [SEED]
//! ```
//!
//! Inputs are valid ones that are damaged. Pickles and snapshots are also generated, most of them well-formed, so that
//! damage reaches the code behind the first opcodes. Every input is read, and the text of its findings is made.
//! Launch files (readers `launch-shell` and so on) are read with what they name, and resolved.
//! Runs (reader `configurations`) are generated and simulated: a configuration of any family with some entries changed,
//! and a setup. Recordings (reader `recordings`) are read and replayed, those of all sizes at one of their sizes.
//!
//! The program stops at a panic, or at an input for which one of its threads works for more than two seconds (a run: five)
//! or which takes more than a gibibyte (a run: four), and leaves the input in `fuzz-READER.bin`. The limits on time apply
//! with `--release` only. Equal seeds give equal inputs.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

mod configured;
mod launched;
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

/// Counts the bytes allocated. The size of the process would not do: it includes memory freed by earlier inputs.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Longest CPU time of a thread for one input. Inputs have a few hundred kilobytes, but a run simulates a whole step.
fn most_time(reader: &str) -> Duration {
    Duration::from_secs(if reader == seeds::RUNS { 5 } else { 2 })
}

/// Most memory for one input in KiB. The log of a simulated run is large.
fn most_kib(reader: &str) -> u64 {
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
    let file = format!("fuzz-{reader}.bin");
    let (mut inputs, mut understood, mut slowest, mut most_held) = (0u64, 0u64, Duration::ZERO, 0);
    let watched = watch(&file, Duration::from_secs(60));
    while Instant::now() < until {
        let input = mutator.next();
        *watched.lock().expect("the watch does not panic") = (Instant::now(), input.clone());
        let (started, before) = (Instant::now(), cpu_times());
        // A thread may still hold memory of the previous input.
        let held_before = HEAP.current_usage();
        HEAP.reset_peak_usage();
        let result = std::panic::catch_unwind(|| feed(reader, &input));
        let took = busiest(&before, &cpu_times()).unwrap_or_else(|| started.elapsed());
        slowest = slowest.max(took);
        let held = HEAP.peak_usage().saturating_sub(held_before) as u64 >> 10;
        most_held = most_held.max(held);
        let Ok(is_understood) = result else {
            return fail(&file, &input, "panicked");
        };
        let is_slow = took > most_time(reader) && !cfg!(debug_assertions);
        if is_slow || held > most_kib(reader) {
            return fail(&file, &input, &format!("took {took:?}, {held} KiB held"));
        }
        inputs += 1;
        understood += u64::from(is_understood);
    }
    println!(
        "{reader}: {inputs} inputs in {seconds} s, {understood} understood, slowest {slowest:?}, {most_held} KiB at most"
    );
    ExitCode::SUCCESS
}

/// Watches the current input, with the time at which it began: if it takes longer than `most`, saves it to `file` and
/// stops the program.
fn watch(file: &str, most: Duration) -> Arc<Mutex<(Instant, Vec<u8>)>> {
    let watched = Arc::new(Mutex::new((Instant::now(), Vec::new())));
    let (seen, file) = (watched.clone(), file.to_owned());
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let (since, input) = &*seen.lock().expect("the program does not panic with it");
            if since.elapsed() > most {
                fail(&file, input, &format!("did not end in {most:?}"));
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

fn fail(file: &str, input: &[u8], why: &str) -> ExitCode {
    std::fs::write(file, input).expect("the input can be saved");
    eprintln!("{why}; the input is in {file}");
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
    if let Some(name) = launched::file_of(reader) {
        return launched::feed(name, input);
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
        let length = words::title(&finding.cause, finding.confidence).key.len() + words::evidence(&finding.cause).len();
        assert!(length > 0 && !finding.row().is_empty());
        for quote in &finding.quotes {
            assert!(is_in(&quote.text, input), "{:?} is quoted, and not there", quote.text);
        }
    }
    true
}

/// Returns true if a quotation is in the input, but for masked secrets, and for what escapes make of a line.
fn is_in(quote: &str, input: &[u8]) -> bool {
    let plain = |text: &str| -> String { text.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect() };
    let text = plain(&String::from_utf8_lossy(input));
    let has_escapes = input.contains(&0x1b) || input.contains(&0);
    has_escapes
        || quote
            .trim_end_matches('…')
            .split("***")
            .all(|part| text.contains(&plain(part)))
}

/// CPU time of each thread of this process; empty if the system does not report it.
fn cpu_times() -> BTreeMap<OsString, Duration> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let cpu_time = |thread: DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let nanoseconds = text.split_ascii_whitespace().next()?.parse().ok()?;
        Some((thread.file_name(), Duration::from_nanos(nanoseconds)))
    };
    threads.filter_map(cpu_time).collect()
}

/// Longest CPU time of a thread between two readings: on a busy machine the wall clock also counts other processes.
fn busiest(before: &BTreeMap<OsString, Duration>, after: &BTreeMap<OsString, Duration>) -> Option<Duration> {
    let since =
        |(thread, now): (&OsString, &Duration)| now.saturating_sub(before.get(thread).copied().unwrap_or_default());
    after.iter().map(since).max()
}
