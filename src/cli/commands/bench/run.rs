//! A run: kernel after kernel, each result written as it comes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use vramscope_benchmark::{Conditions, Kernel, Layout, Precision, Reading, Record, Run, SCHEMA_VERSION, Tool};

use super::bar::Bar;
use super::measure::{Effort, canary, measure};
use super::{Bench, Interface, file, found};
use crate::backends::Backend;
use crate::failure::Failure;
use crate::kernels::suite;

/// What a run may take: half a minute and five, less what starting takes.
const QUICK: Duration = Duration::from_secs(24);
const FULL: Duration = Duration::from_secs(270);
/// Cards of a machine that is not known yet: the names of all kernels that may be asked for.
const MOST_CARDS: u32 = 16;
/// A drop of the clock that a reader should know of.
const DRIFT: f64 = 0.05;

/// What the choice of kernels depends on.
pub struct Machine {
    /// Through the portable interface.
    portable: bool,
    cards: u32,
    /// Free bytes of a card, where that is known.
    free: Option<u64>,
}

impl Machine {
    /// That of a card.
    pub fn of(backend: &dyn Backend) -> Self {
        let device = backend.device();
        Self {
            portable: device.backend != "cuda",
            cards: device.count.unwrap_or(1),
            free: device
                .memory_bytes
                .zip(backend.taken_bytes())
                .map(|(all, taken)| all.saturating_sub(taken)),
        }
    }

    /// One that has not been looked for.
    pub(super) fn unknown(interface: Interface) -> Self {
        Self {
            portable: interface == Interface::Portable,
            cards: MOST_CARDS,
            free: None,
        }
    }
}

impl Bench {
    /// The kernels whose names hold the words.
    ///
    /// # Errors
    /// When there is none.
    pub fn chosen(&self, machine: &Machine) -> Result<Vec<Kernel>, Failure> {
        let quick = self.quick;
        let holds = |kernel: &Kernel| {
            let name = kernel.label();
            self.filters.iter().any(|filter| match filter.strip_prefix('=') {
                Some(exact) => name == exact,
                None => filter.split_whitespace().all(|word| name.contains(word)),
            })
        };
        let all = if machine.portable {
            suite::portable(quick)
        } else {
            suite::kernels(quick, machine.cards, machine.free)
        };
        let chosen: Vec<Kernel> = all
            .into_iter()
            .filter(|k| self.filters.is_empty() || holds(k))
            .collect();
        match chosen.is_empty() {
            false => Ok(chosen),
            true => Err(Failure::Input(format!(
                "no kernel's name holds \"{}\"{}; `vramscope bench --list` names them all",
                self.filters.join("\" or \""),
                if quick { " in a quick run" } else { "" }
            ))),
        }
    }
}

/// Measures what is asked for.
///
/// # Errors
/// When there is no GPU, or the record cannot be written.
pub fn run(bench: &Bench) -> Result<Record, Failure> {
    let old = bench.resume.as_deref().map(file::read).transpose()?;
    // Before the search for a card, so that a wrong word is told at once.
    bench.chosen(&Machine::unknown(bench.backend))?;
    let backend = found::backend(bench.backend)?;
    let mut kernels = bench.chosen(&Machine::of(backend.as_ref()))?;
    if bench.filters.is_empty() {
        kernels.retain(|kernel| !backend.is_stand_in(kernel));
    }
    let (mut record, path) = match (old, &bench.resume) {
        (Some(old), Some(path)) => (resumed(old, backend.as_ref(), path)?, path.clone()),
        _ => (begun(bench, backend.as_ref()), new_path(bench)),
    };
    let left: Vec<Kernel> = kernels.into_iter().filter(|k| record.result_of(k).is_none()).collect();
    record.run.complete = left.is_empty();
    // Before the first kernel, so that a place that cannot be written is known at once.
    file::write(&path, &record)?;
    let stop = stop_flag()?;
    let mut watch = Watch::begin(backend.as_ref(), &mut record.conditions);
    let bar = Bar::new(left.len());
    let all = if bench.quick { QUICK } else { FULL };
    let begin = Instant::now();
    for (i, kernel) in left.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        bar.begin(&kernel.label());
        let effort = effort(all.saturating_sub(begin.elapsed()), left.len() - i);
        let result = measure(backend.as_ref(), kernel, effort);
        bar.end(kernel, &result);
        record.put(result);
        record.run.complete = i + 1 == left.len();
        record.conditions.other_processes = record.conditions.other_processes.max(backend.other_processes());
        file::write(&path, &record)?;
    }
    bar.close();
    watch.end(backend.as_ref(), &mut record.conditions);
    file::write(&path, &record)?;
    if !record.run.complete {
        let path = path.display();
        let text = format!(
            "interrupted; {} results are in {path}: go on with --resume {path}",
            record.results.len()
        );
        return Err(Failure::Broken(text));
    }
    anstream::eprintln!("{} results are in {}", record.results.len(), path.display());
    Ok(record)
}

/// Three fifths of a kernel's share of the time that is left; the rest is for making it ready and for the
/// reference.
fn effort(left: Duration, kernels: usize) -> Effort {
    let share = left / kernels.max(1) as u32;
    let bound = |d: Duration, least, most| d.clamp(Duration::from_millis(least), Duration::from_millis(most));
    Effort {
        warm_up: bound(share * 2 / 10, 5, 100),
        sampling: bound(share * 4 / 10, 10, 300),
    }
}

fn new_path(bench: &Bench) -> PathBuf {
    let dated = || PathBuf::from(format!("vramscope-bench-{}.json", file::now().replace(':', "")));
    bench.output.clone().unwrap_or_else(dated)
}

fn begun(bench: &Bench, backend: &dyn Backend) -> Record {
    Record {
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            name: "vramscope".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        },
        date: Some(file::now()),
        run: Run {
            quick: bench.quick,
            complete: false,
        },
        device: backend.device(),
        conditions: Conditions {
            other_processes: backend.other_processes(),
            taken_bytes: backend.taken_bytes(),
            ..Conditions::default()
        },
        results: Vec::new(),
    }
}

fn resumed(mut old: Record, backend: &dyn Backend, path: &std::path::Path) -> Result<Record, Failure> {
    let here = backend.device();
    let same =
        old.device.name == here.name && old.device.driver == here.driver && old.device.libraries == here.libraries;
    if !same {
        return Err(Failure::Input(format!(
            "{} is of {} with other software, this is {}: its results cannot be mixed; begin anew without --resume",
            path.display(),
            old.device.name,
            here.name
        )));
    }
    // What broke may work this time.
    old.results
        .retain(|result| !matches!(result.outcome, vramscope_benchmark::Outcome::Failed { .. }));
    Ok(old)
}

/// Watches whether the card works at the end of a run as it did at its beginning: the clock depends on the
/// kernel that runs, so both ends run the same one.
struct Watch {
    kernel: Kernel,
    ns: Option<u64>,
}

impl Watch {
    fn begin(backend: &dyn Backend, conditions: &mut Conditions) -> Self {
        // Through the portable interface a card, or a processor, may be slow.
        let sides = [if backend.device().backend == "cuda" { 4096 } else { 512 }; 3];
        let kernels = [Precision::Bf16, Precision::Fp32].map(|p| suite::gemm(p, sides, Layout::Nt));
        let first = |kernel: &Kernel| canary(backend, kernel).map(|ns| (kernel.clone(), Some(ns)));
        let found = kernels.iter().find_map(first);
        let (kernel, ns) = found.unwrap_or_else(|| (kernels[0].clone(), None));
        conditions.before = Some(backend.reading());
        Self { kernel, ns }
    }

    fn end(&mut self, backend: &dyn Backend, conditions: &mut Conditions) {
        let now = self.ns.and_then(|_| canary(backend, &self.kernel));
        conditions.after = Some(backend.reading());
        conditions.warnings = warnings(conditions, self.ns.zip(now));
    }
}

/// What a reader should know; `canary` is the time of one kernel at the beginning and at the end.
fn warnings(conditions: &Conditions, canary: Option<(u64, u64)>) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(others) = conditions.other_processes.filter(|n| *n > 0) {
        warnings.push(format!(
            "{others} other process{} computed on the card: times may be too long; stop them and measure again",
            if others == 1 { "" } else { "es" }
        ));
    }
    let clock = |reading: &Option<Reading>| reading.as_ref().and_then(|r| r.sm_clock_mhz);
    let clocks = clock(&conditions.before).zip(clock(&conditions.after));
    let drifts = |(before, after): (f64, f64)| (after / before.max(1.0) - 1.0).abs() > DRIFT;
    let told = clocks.map_or_else(String::new, |(a, b)| format!(" (clock {a} and {b} MHz)"));
    match canary {
        // Under a power limit the clock jumps with every reading; the time of the work does not.
        Some((before, after)) if drifts((before as f64, after as f64)) => warnings.push(format!(
            "one matrix product took {before} ns at the start and {after} ns at the end{told}: times do not compare; \
             let the card cool, look for a power limit or other work on the card, and measure again"
        )),
        None if clocks.is_some_and(|(a, b)| drifts((f64::from(a), f64::from(b)))) => warnings.push(format!(
            "the multiprocessors' clock changed during the run{told}: times at the start and the end do not compare"
        )),
        _ => {}
    }
    warnings
}

/// Set by Ctrl-C: the kernel in hand ends, and the run with it. A second one ends the program at once.
fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    ctrlc::set_handler(move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        anstream::eprintln!("\nstopping after this kernel; once more to stop at once");
    })
    .map_err(|e| Failure::Broken(format!("cannot listen for Ctrl-C: {e}")))?;
    Ok(flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_card_and_a_falling_clock_are_warned_of() {
        let at = |mhz| {
            Some(Reading {
                sm_clock_mhz: Some(mhz),
                ..Reading::default()
            })
        };
        let mut conditions = Conditions {
            before: at(1980),
            after: at(1950),
            other_processes: Some(0),
            ..Conditions::default()
        };
        assert!(warnings(&conditions, Some((100, 104))).is_empty());
        conditions.after = at(1500);
        conditions.other_processes = Some(2);
        let text = warnings(&conditions, Some((100, 110))).join("\n");
        for told in [
            "2 other processes",
            "took 100 ns at the start",
            "clock 1980 and 1500 MHz",
        ] {
            assert!(text.contains(told), "{text}");
        }
        assert!(warnings(&conditions, None)[1].contains("clock changed"));
    }

    #[test]
    fn the_time_that_is_left_is_shared_out() {
        let all = effort(Duration::from_secs(200), 400);
        assert_eq!(all.sampling, Duration::from_millis(200));
        let late = effort(Duration::ZERO, 400);
        assert_eq!(late.sampling, Duration::from_millis(10));
    }
}
