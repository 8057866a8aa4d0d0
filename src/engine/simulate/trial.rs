//! A run under a limit of the allocator: whether it trains, or where it stops.

use std::ops::Range;

use super::SimulateError;
use super::check::check;
use super::large_pool::LargePool;
use super::player::Player;
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

/// What became of a run under a limit.
///
/// On a miss of its cache PyTorch first gives cached segments back and tries again (`retries`), and stops
/// only when that is not enough: so does the simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// Highest allocated bytes, until it stopped.
    pub peak_allocated: Bytes,
    /// Highest reserved bytes, until it stopped.
    pub peak_reserved: Bytes,
    /// How often the whole cache was given back to serve a request (`num_alloc_retries`). Each costs a
    /// synchronisation of the device and new segments.
    pub retries: u64,
    /// Why it did not train.
    pub stopped: Option<Stopped>,
}

/// Where a run ran out of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Which step, from 1; 0 while the model is made.
    pub step: u64,
    /// The part of the step; nothing while the model is made.
    pub phase: Option<Phase>,
    /// The module and operation whose tensor found no room.
    pub tensor: String,
    /// What PyTorch says.
    pub error: OutOfMemory,
    /// Where segments lay.
    pub order: SegmentOrder,
}

/// In what order of addresses the segments of a run lie, which decides which cached block is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentOrder {
    /// As in recorded traces of fresh processes.
    Fresh,
    /// In the order in which they were made.
    Ascending,
    /// One of [`ORDERS`] that were drawn.
    Drawn(u64),
}

/// Orders of segments that are drawn to see whether a run always fits. A run that fits in all of them fails in
/// less than one process in twenty, at 95% confidence (the rule of three: 3/60; Hanley and Lippman-Hand, JAMA 249,
/// 1983).
pub const ORDERS: u64 = 60;

impl Trial {
    /// Whether all steps ran.
    pub const fn trains(&self) -> bool {
        self.stopped.is_none()
    }
}

/// Trains some steps under `options`, whose limit says what may be reserved: in a fresh process, and with
/// segments in the order of a process that has trained before. It trains where it does so in both.
///
/// The cache is not emptied once the model is made, as training scripts do not.
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

/// As [`attempt`], of a run that is recorded already.
pub fn attempt_recorded(recording: &Recording, options: &Options, steps: u64) -> Trial {
    let run = Run {
        recording,
        requests: recording.log.births.requests(),
        steps,
    };
    let fresh = run.play(options, DriverAddresses::default(), SegmentOrder::Fresh);
    // With expandable segments the order of segments decides nothing.
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

/// The first of [`ORDERS`] drawn orders of segments in which a recorded run stops, if there is one.
///
/// What the large pool does is played alone, beside the most that the small pool reserves in a fresh process; where
/// that stops, the whole is played in the same order and decides.
pub fn stops_in_some_order(recording: &Recording, options: &Options, steps: u64) -> Option<Trial> {
    stops_in_orders(recording, options, steps, 0..ORDERS)
}

/// As [`stops_in_some_order`], of these orders alone.
pub fn stops_in_orders(recording: &Recording, options: &Options, steps: u64, orders: Range<u64>) -> Option<Trial> {
    let run = Run {
        recording,
        requests: recording.log.births.requests(),
        steps,
    };
    if options.expandable_segments {
        return None;
    }
    let large = LargePool::of(recording);
    let mut fresh = run.player(options, Box::new(DriverAddresses::default()));
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
        let mut player = large.player(&rest, Box::new(source.clone()));
        let alone = run.steps(&mut player, [&large.build, &large.first, &large.steady]);
        let whole = alone
            .is_err()
            .then(|| run.play(options, source, SegmentOrder::Drawn(number)));
        whole.filter(|trial| !trial.trains())
    })
}

struct Run<'a> {
    recording: &'a Recording,
    requests: Vec<u64>,
    steps: u64,
}

impl Run<'_> {
    fn play(&self, options: &Options, source: impl SegmentSource + 'static, order: SegmentOrder) -> Trial {
        let mut player = self.player(options, Box::new(source));
        let stopped = self.steps(&mut player, self.whole()).err();
        let allocator = player.allocator();
        Trial {
            peak_allocated: allocator.peak_allocated(),
            peak_reserved: allocator.peak_reserved(),
            retries: allocator.num_alloc_retries(),
            stopped: stopped.map(|(step, error)| {
                let (at, id) = player.missed().unwrap_or_default();
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

    fn player(&self, options: &Options, source: Box<dyn SegmentSource>) -> Player {
        let allocator = CachingAllocator::with_source(options.clone(), source);
        Player::new(self.requests.iter().copied(), &self.recording.streams, allocator)
    }

    /// Making the model, the first step, and every later one.
    fn whole(&self) -> [&[Event]; 3] {
        let Recording {
            build, first, steady, ..
        } = self.recording;
        [build, &first.events, &steady.events]
    }

    /// Makes the model and runs the steps; which of them stops, 0 where making the model does.
    fn steps(&self, player: &mut Player, [build, first, steady]: [&[Event]; 3]) -> Result<(), (u64, OutOfMemory)> {
        player.play(build).map_err(|error| (0, error))?;
        player
            .repeat(first, self.steps.min(1))
            .map_err(|(_, error)| (1, error))?;
        let later = player.repeat(steady, self.steps.saturating_sub(1));
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
        let birth = &log.births[id as usize];
        let module = log.path(birth.scope);
        if module.is_empty() {
            birth.name.to_owned()
        } else {
            format!("{module}: {}", birth.name)
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

    /// Every step played, none left out.
    fn played(run: &Run<'_>, options: &Options, source: impl SegmentSource + 'static) -> (bool, u64, Bytes) {
        let mut player = run.player(options, Box::new(source));
        let [build, first, steady] = run.whole();
        let later = std::iter::repeat_n(steady, run.steps as usize - 1);
        let trains = [build, first]
            .into_iter()
            .chain(later)
            .all(|events| player.play(events).is_ok());
        let allocator = player.allocator();
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
            let run = Run {
                recording: &recording,
                requests: recording.log.births.requests(),
                steps: 7,
            };
            let roomy = run.play(&Options::default(), DriverAddresses::default(), SegmentOrder::Fresh);
            // From more than it needs to less, through where the cache is given back again and again.
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
