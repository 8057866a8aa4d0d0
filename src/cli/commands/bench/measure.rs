//! Measures one kernel: prepares it, compares its result, warms up, and times it.

use std::time::{Duration, Instant};

use vramscope_benchmark::{Kernel, Measured, Measurement, Outcome, Summary};

use crate::backends::{Backend, Prepared, Refusal};
use crate::kernels::reference;
use crate::kernels::work::Work;

/// Time budget for one kernel.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Duration before the first sample, in which clocks rise and caches fill.
    pub warm_up: Duration,
    /// Longest duration of all samples, except that a minimum number is always taken.
    pub sampling: Duration,
}

/// Smallest number of samples.
const FEWEST: usize = 7;
/// Duration of a launch from which on three samples are enough.
const SLOW_NS: u64 = 500_000_000;
/// Largest number of samples.
const MOST: usize = 40;
/// Shortest duration of a sample, long compared with the clock's resolution of half a microsecond.
const SAMPLE_NS: u64 = 200_000;
/// Largest number of launches per sample.
const MOST_LAUNCHES: u64 = 1000;

/// Measures a kernel.
pub fn measure(backend: &dyn Backend, kernel: &Kernel, effort: Effort) -> Measurement {
    let work = Work::of(kernel);
    let mut result = Measurement {
        kernel: kernel.clone(),
        bytes: Some(work.bytes),
        flops: kernel.flops(),
        implementation: None,
        outcome: Outcome::Failed { reason: String::new() },
    };
    match backend.prepare(kernel) {
        Err(refusal) => result.outcome = refusal.outcome(),
        Ok(mut prepared) => {
            result.implementation = Some(prepared.implementation());
            result.outcome = outcome(kernel, prepared.as_mut(), effort).unwrap_or_else(Refusal::outcome);
        }
    }
    result
}

fn outcome(kernel: &Kernel, prepared: &mut dyn Prepared, effort: Effort) -> Result<Outcome, Refusal> {
    prepared.run_once()?;
    let check = reference::check(kernel, &mut *prepared).map_err(Refusal::Failed)?;
    if let Some(check) = check.as_ref().filter(|check| !check.passed) {
        return Ok(Outcome::FailedCheck(check.clone()));
    }
    let once = prepared.time(1)?.max(1);
    let launches = SAMPLE_NS.div_ceil(once).clamp(1, MOST_LAUNCHES) as u32;
    // A long launch averages its own noise.
    let fewest = if once > SLOW_NS { 3 } else { FEWEST };
    let begin = Instant::now();
    while begin.elapsed() < effort.warm_up {
        prepared.time(launches)?;
    }
    let (begin, mut samples_ns) = (Instant::now(), Vec::new());
    while samples_ns.len() < fewest || (samples_ns.len() < MOST && begin.elapsed() < effort.sampling) {
        let ns = prepared.time(launches)?;
        samples_ns.push(ns.div_ceil(u64::from(launches)));
    }
    Ok(Outcome::Measured(Measured {
        timer: prepared.timer(),
        launches_per_sample: launches,
        summary: Summary::of(&samples_ns),
        samples_ns,
        peak_extra_bytes: prepared.peak_extra_bytes(),
        check,
    }))
}

/// Median time of a kernel that shows whether the card changed during a run; its result is ignored.
pub fn canary(backend: &dyn Backend, kernel: &Kernel) -> Option<u64> {
    let mut prepared = backend.prepare(kernel).ok()?;
    let once = prepared.time(1).ok()?.max(1);
    let launches = (CANARY_NS / once).clamp(1, 10_000) as u32;
    // The first rounds bring the card to its operating clock.
    let samples: Vec<u64> = (0..6).map_while(|_| prepared.time(launches).ok()).collect();
    let summary = Summary::of(samples.get(3..)?)?;
    Some(summary.median_ns / u64::from(launches))
}

/// Duration of each of the six rounds of the canary.
const CANARY_NS: u64 = 30_000_000;
