//! Runs training under a limit of the allocator, to see if it completes or where it stops.

use std::ops::Range;

use super::SimulateError;
use super::check::check;
use super::large_pool::LargePool;
use super::replayer::Replayer;
use super::side_by_side::first_answer;
use super::steps::{Recording, Step, record};
use crate::allocator::{
    AscendingAddresses, CachingAllocator, DriverAddresses, Options, OutOfMemory, PoolKind, SegmentSource,
    ShuffledAddresses,
};
use crate::report::Phase;
use crate::tape::Gpu;
use crate::tape::log::{Event, StorageId};
use crate::units::Bytes;
use crate::{Model, Setup};

/// Outcome of a run under a limit.
///
/// When nothing cached serves a request, PyTorch first releases cached segments and tries again (`retries`), and stops
/// only if that is not enough; the simulation does the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// Highest allocated bytes, up to the point where it stopped.
    pub peak_allocated: Bytes,
    /// Highest reserved bytes, up to the point where it stopped.
    pub peak_reserved: Bytes,
    /// Number of times that the whole cache was released to serve a request (`num_alloc_retries`). Each costs a
    /// synchronisation of the device and new segments.
    pub retries: u64,
    /// Reason that it did not complete; `None` if it did.
    pub stopped: Option<Stopped>,
}

/// Point at which a run ran out of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Number of the step, from 1; 0 while the model is made.
    pub step: u64,
    /// Phase of the step; `None` while the model is made.
    pub phase: Option<Phase>,
    /// Module and operation of the tensor that found no memory.
    pub tensor: String,
    /// PyTorch's error.
    pub error: OutOfMemory,
    /// Order of the segments in this run.
    pub order: SegmentOrder,
}

/// Order of segment addresses in a run, which decides which cached block is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentOrder {
    /// The order in recorded traces of fresh processes.
    NewProcess,
    /// The order in which segments were made.
    Ascending,
    /// One of [`ORDERS`] random orders.
    Drawn(u64),
}

/// Number of random orders of segments tried to see if a run always fits. A run that fits in all of them fails in less
/// than one process in twenty, at 95% confidence (the rule of three: 3/60; Hanley and Lippman-Hand, JAMA 249, 1983).
pub const ORDERS: u64 = 60;

impl Trial {
    /// Returns true if all steps ran.
    pub const fn trains(&self) -> bool {
        self.stopped.is_none()
    }
}

/// Trains `steps` steps under `options`, whose limit sets the bytes that may be reserved: in a fresh process, and with
/// the segment order of a process that has trained before. The run trains if it does in both.
///
/// The cache is not emptied after the model is made, since training scripts do not do so.
///
/// # Errors
/// When the setup does not fit the model, or the run would fail for another reason than memory.
pub fn attempt(model: &Model, setup: &Setup, gpu: Gpu, options: &Options, steps: u64) -> Result<Trial, SimulateError> {
    check(model, setup)?;
    let recording = record(model, setup, gpu);
    if let Some(failure) = recording.failure {
        return Err(SimulateError::Fails(failure));
    }
    Ok(attempt_recorded(&recording, options, steps))
}

/// Trains a recorded run under `options`, as [`attempt`] does.
pub fn attempt_recorded(recording: &Recording, options: &Options, steps: u64) -> Trial {
    let run = TrialRun {
        recording,
        requests: recording.log.allocations.requests(),
        steps,
    };
    let fresh = run.play(options, DriverAddresses::default(), SegmentOrder::NewProcess);
    // With expandable segments the order of segments does not matter.
    if fresh.stopped.is_some() || options.expandable_segments {
        return fresh;
    }
    let used = run.play(options, AscendingAddresses::default(), SegmentOrder::Ascending);
    Trial {
        peak_allocated: fresh.peak_allocated.max(used.peak_allocated),
        peak_reserved: fresh.peak_reserved.max(used.peak_reserved),
        retries: fresh.retries.max(used.retries),
        stopped: used.stopped,
    }
}

/// Returns the first of [`ORDERS`] random orders of segments in which a recorded run stops, if there is one.
///
/// The large pool is first replayed alone, next to the small pool's peak of reserved bytes in a fresh process; if that
/// stops, the whole run is replayed in that order and decides.
pub fn stops_in_some_order(recording: &Recording, options: &Options, steps: u64) -> Option<Trial> {
    stops_in_orders(recording, options, steps, 0..ORDERS)
}

/// Returns the first of these random orders of segments in which a recorded run stops, if there is one.
pub fn stops_in_orders(recording: &Recording, options: &Options, steps: u64, orders: Range<u64>) -> Option<Trial> {
    let run = TrialRun {
        recording,
        requests: recording.log.allocations.requests(),
        steps,
    };
    if options.expandable_segments {
        return None;
    }
    let large = LargePool::of(recording);
    let mut fresh = run.replayer(options, Box::new(DriverAddresses::default()));
    let small = match run.steps(&mut fresh, run.whole()) {
        Ok(()) => fresh.allocator().reserved_of(PoolKind::Small),
        Err(_) => options.limit.unwrap_or_default(),
    };
    let rest = Options {
        limit: options.limit.map(|limit| limit.saturating_sub(small)),
        ..options.clone()
    };
    first_answer(orders, |number| {
        let source = ShuffledAddresses::new(number);
        let mut replayer = large.replayer(&rest, Box::new(source.clone()));
        let alone = run.steps(&mut replayer, [&large.build, &large.first, &large.steady]);
        let whole = alone
            .is_err()
            .then(|| run.play(options, source, SegmentOrder::Drawn(number)));
        whole.filter(|trial| !trial.trains())
    })
}

struct TrialRun<'a> {
    recording: &'a Recording,
    requests: Vec<u64>,
    steps: u64,
}

impl TrialRun<'_> {
    fn play(&self, options: &Options, source: impl SegmentSource + 'static, order: SegmentOrder) -> Trial {
        let mut replayer = self.replayer(options, Box::new(source));
        let stopped = self.steps(&mut replayer, self.whole()).err();
        let allocator = replayer.allocator();
        Trial {
            peak_allocated: allocator.peak_allocated(),
            peak_reserved: allocator.peak_reserved(),
            retries: allocator.num_alloc_retries(),
            stopped: stopped.map(|(step, error)| {
                let (at, id) = replayer.missed().unwrap_or_default();
                Stopped {
                    step,
                    phase: self.step(step).map(|step| phase(step, at)),
                    tensor: self.name(id),
                    error,
                    order,
                }
            }),
        }
    }

    fn replayer(&self, options: &Options, source: Box<dyn SegmentSource>) -> Replayer {
        let allocator = CachingAllocator::with_source(options.clone(), source);
        Replayer::new(self.requests.iter().copied(), &self.recording.streams, allocator)
    }

    /// Events of making the model, of the first step, and of every step after it.
    fn whole(&self) -> [&[Event]; 3] {
        let Recording {
            build, first, steady, ..
        } = self.recording;
        [build, &first.events, &steady.events]
    }

    /// Makes the model and runs the steps; an error carries the number of the failing step, 0 for making the model.
    fn steps(&self, replayer: &mut Replayer, [build, first, steady]: [&[Event]; 3]) -> Result<(), (u64, OutOfMemory)> {
        replayer.play(build).map_err(|error| (0, error))?;
        replayer
            .repeat(first, self.steps.min(1))
            .map_err(|(_, error)| (1, error))?;
        let later = replayer.repeat(steady, self.steps.saturating_sub(1));
        later.map_err(|(number, error)| (number + 2, error))
    }

    fn step(&self, number: u64) -> Option<&Step> {
        match number {
            0 => None,
            1 => Some(&self.recording.first),
            _ => Some(&self.recording.steady),
        }
    }

    fn name(&self, id: StorageId) -> String {
        let log = &self.recording.log;
        let allocation = &log.allocations[id as usize];
        let module = log.path(allocation.scope);
        if module.is_empty() {
            allocation.name.to_owned()
        } else {
            format!("{module}: {}", allocation.name)
        }
    }
}

fn phase(step: &Step, at: usize) -> Phase {
    if at < step.marks.after_forward {
        Phase::Forward
    } else if at < step.marks.after_backward {
        Phase::Backward
    } else {
        Phase::Optimizer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replays every step, none left out.
    fn played(run: &TrialRun<'_>, options: &Options, source: impl SegmentSource + 'static) -> (bool, u64, Bytes) {
        let mut replayer = run.replayer(options, Box::new(source));
        let [build, first, steady] = run.whole();
        let later = std::iter::repeat_n(steady, run.steps as usize - 1);
        let trains = [build, first]
            .into_iter()
            .chain(later)
            .all(|events| replayer.play(events).is_ok());
        let allocator = replayer.allocator();
        (trains, allocator.num_alloc_retries(), allocator.peak_reserved())
    }

    #[test]
    fn steps_that_would_go_the_same_way_need_not_be_played() {
        let setup = Setup {
            batch: 3,
            seq: 300,
            ..Setup::default()
        };
        for name in ["gpt2", "qwen2.5-0.5b", "smolvlm-256m"] {
            let model = Model::from_catalogue(name).unwrap();
            let recording = record(&model, &setup, Gpu::H200);
            let run = TrialRun {
                recording: &recording,
                requests: recording.log.allocations.requests(),
                steps: 7,
            };
            let roomy = run.play(
                &Options::default(),
                DriverAddresses::default(),
                SegmentOrder::NewProcess,
            );
            // From more memory than it needs to less, through the range in which the cache is released again and again.
            for thousandth in (955..=1005).step_by(5) {
                let options = Options {
                    limit: Some(Bytes::new(roomy.peak_reserved.get() * thousandth / 1000)),
                    ..Options::default()
                };
                for number in 0..3 {
                    let source = ShuffledAddresses::new(number);
                    let trial = run.play(&options, source.clone(), SegmentOrder::Drawn(number));
                    let told = (trial.trains(), trial.retries, trial.peak_reserved);
                    assert_eq!(told, played(&run, &options, source), "{name}, {thousandth}");
                }
            }
        }
    }
}
