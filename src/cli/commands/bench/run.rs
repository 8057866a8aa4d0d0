//! Runs a benchmark kernel by kernel, and writes each result as soon as it is known.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use vramscope_benchmark::{
    Conditions, Kernel, Layout, Measurement, Precision, Reading, Record, Run, SCHEMA_VERSION, Tool,
};

use super::bar::Bar;
use super::measure::{Effort, canary, measure};
use super::pytorch::{self, Running};
use super::{Bench, Interface, file, found, host};
use crate::backends::Backend;
use crate::failure::Failure;
use crate::kernels::suite;

/// Time budgets of a run: half a minute or five minutes, minus the time to start. Measuring the host counts.
const QUICK: Duration = Duration::from_secs(20);
const FULL: Duration = Duration::from_secs(270);
/// Number of cards assumed before the machine is known, so that the names of all kernels are accepted.
const MOST_CARDS: u32 = 16;
/// Relative drop of the clock that is worth a warning.
const DRIFT: f64 = 0.05;

/// Properties of a machine that the choice of kernels depends on.
pub struct Machine {
    /// True for the portable backend.
    portable: bool,
    cards: u32,
    /// Free bytes of a card, if known.
    free: Option<u64>,
}

impl Machine {
    /// Properties of the machine behind a backend.
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

    /// Properties of a machine that has not been examined yet.
    pub(super) fn unknown(interface: Interface) -> Self {
        Self {
            portable: interface == Interface::Portable,
            cards: MOST_CARDS,
            free: None,
        }
    }
}

impl Bench {
    /// Returns the kernels whose names contain the given words.
    ///
    /// # Errors
    /// If there is none.
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

impl Bench {
    /// Returns true if the host is to be measured: in a run of all kernels on a GPU, unless a record that goes on has it
    /// already.
    fn measures_host(&self, record: &Record) -> bool {
        self.filters.is_empty() && record.host.is_none() && record.device.backend == "cuda"
    }
}

/// Measures the chosen kernels.
///
/// # Errors
/// If there is no GPU, or the record cannot be written.
pub fn run(bench: &Bench) -> Result<Record, Failure> {
    let old = bench.resume.as_deref().map(file::read).transpose()?;
    // Check the words before looking for a card, so that a wrong one is reported at once.
    bench.chosen(&Machine::unknown(bench.backend))?;
    let backend = found::backend(bench.backend)?;
    let mut kernels = bench.chosen(&Machine::of(backend.as_ref()))?;
    // PyTorch runs what it has, and nothing stands in for that.
    let by_pytorch = |kernel: &Kernel| backend.device().backend == "cuda" && pytorch::runs(kernel);
    if bench.filters.is_empty() {
        kernels.retain(|kernel| by_pytorch(kernel) || !backend.is_stand_in(kernel));
    }
    let (mut record, path) = match (old, &bench.resume) {
        (Some(old), Some(path)) => (resumed(old, backend.as_ref(), path)?, path.clone()),
        _ => (begun(bench, backend.as_ref()), new_path(bench)),
    };
    let left: Vec<Kernel> = kernels.into_iter().filter(|k| record.result_of(k).is_none()).collect();
    record.run.complete = left.is_empty();
    // Write the record before the first kernel, so that an unwritable path is reported at once.
    file::write(&path, &record)?;
    let stop = stop_flag()?;
    let mut watch = Watch::begin(backend.as_ref(), &mut record.conditions);
    let session = Session {
        bench,
        backend: backend.as_ref(),
        path: &path,
        stop,
        begin: Instant::now(),
    };
    session.measure(&mut record, left)?;
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

/// A run that is under way.
struct Session<'a> {
    bench: &'a Bench,
    backend: &'a dyn Backend,
    path: &'a Path,
    stop: Arc<AtomicBool>,
    begin: Instant,
}

impl Session<'_> {
    /// Measures the host and the kernels; the host's pace is followed in the middle of the run and at its end.
    fn measure(&self, record: &mut Record, left: Vec<Kernel>) -> Result<(), Failure> {
        let measures_host = self.bench.measures_host(record);
        if measures_host {
            record.host = Some(host::measure(self.bench.python.as_deref(), self.bench.quick));
            file::write(self.path, record)?;
        }
        let follows = measures_host && !self.bench.quick;
        let bar = Bar::new(left.len());
        let (by_pytorch, mut rest): (Vec<Kernel>, Vec<Kernel>) = left.into_iter().partition(pytorch::runs);
        rest.extend(self.by_pytorch(record, by_pytorch, &bar)?);
        record.run.complete = rest.is_empty();
        let all = if self.bench.quick { QUICK } else { FULL };
        for (i, kernel) in rest.iter().enumerate() {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            if follows && i == rest.len() / 2 {
                self.follow(record);
            }
            bar.begin(&kernel.label());
            let effort = effort(all.saturating_sub(self.begin.elapsed()), rest.len() - i);
            let result = measure(self.backend, kernel, effort);
            // No Python of this run computes now: what does is another's.
            let others = self.backend.other_processes();
            record.conditions.other_processes = record.conditions.other_processes.max(others);
            self.keep(record, result, &bar)?;
            record.run.complete = i + 1 == rest.len();
        }
        bar.close();
        if follows && record.run.complete {
            self.follow(record);
        }
        Ok(())
    }

    /// Runs what PyTorch alone has; returns what remains where there is none.
    fn by_pytorch(&self, record: &mut Record, kernels: Vec<Kernel>, bar: &Bar) -> Result<Vec<Kernel>, Failure> {
        if kernels.is_empty() || record.device.backend != "cuda" {
            return Ok(kernels);
        }
        let mut running = match Running::start(self.bench.python.as_deref(), kernels.clone()) {
            Ok(running) => running,
            Err((_, kernels)) => return Ok(kernels.into_iter().filter(|k| !self.is_stand_in(k)).collect()),
        };
        while !self.stop.load(Ordering::Relaxed)
            && let Some(result) = running.next()
        {
            bar.begin(&result.kernel.label());
            self.keep(record, result, bar)?;
        }
        Ok(kernels
            .into_iter()
            .filter(|k| record.result_of(k).is_none() && !self.is_stand_in(k))
            .collect())
    }

    /// Returns true if a run of all kernels leaves this one out.
    fn is_stand_in(&self, kernel: &Kernel) -> bool {
        self.bench.filters.is_empty() && self.backend.is_stand_in(kernel)
    }

    fn keep(&self, record: &mut Record, result: Measurement, bar: &Bar) -> Result<(), Failure> {
        bar.end(&result.kernel, &result);
        record.put(result);
        file::write(self.path, record)
    }

    fn follow(&self, record: &mut Record) {
        if let Some(host) = &mut record.host {
            host::follow(self.bench.python.as_deref(), host);
        }
    }
}

/// Assigns three fifths of a kernel's share of the remaining time; the rest is for its preparation and the reference.
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
        host: None,
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
    // Failed kernels may work this time, so run them again.
    old.results
        .retain(|result| !matches!(result.outcome, vramscope_benchmark::Outcome::Failed { .. }));
    Ok(old)
}

/// Detects if the card became slower during a run. The clock depends on the running kernel, so the same kernel runs at
/// the beginning and at the end.
struct Watch {
    kernel: Kernel,
    ns: Option<u64>,
}

impl Watch {
    fn begin(backend: &dyn Backend, conditions: &mut Conditions) -> Self {
        // A card, or a CPU, behind the portable interface may be slow.
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

/// Warnings for the reader; `canary` holds the times of one kernel at the beginning and at the end.
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
        // Under a power limit the clock differs with every reading; the time of the kernel does not.
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

/// Flag that Ctrl-C sets: the current kernel finishes, and the run ends. A second Ctrl-C ends the program at once.
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
