//! Finds the largest batch, or another size, of a recorded model that trains under a limit.

use vramscope_engine::allocator::Options;
use vramscope_engine::recording::{Overrides, RecordingError, Sizes};
use vramscope_engine::simulate::{ORDERS, Recording, Trial, attempt_recorded, stops_in_orders};
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;

use crate::max_batch::{ORDERS_A_STEP, Search};

/// Largest value of a size that trains under a limit.
#[derive(Debug, Clone)]
pub struct Largest {
    /// Largest value; `None` if even the least valid one does not train.
    pub value: Option<u64>,
    /// Tried values in ascending order, with their outcomes.
    pub tries: Vec<(u64, Trial)>,
    /// Least and greatest value at which the recording is valid.
    pub range: [u64; 2],
    /// Command that records beyond the range, if the answer lies at its end.
    pub beyond: Option<String>,
}

/// Card, allocator, limit and steps of a search.
#[derive(Debug, Clone, Copy)]
pub struct RecordedLimits {
    /// Card to run on; the recorded one if there is none.
    pub gpu: Option<Gpu>,
    /// Settings that replace recorded ones.
    pub overrides: Overrides,
    /// Bytes that the allocator may reserve.
    pub limit: Bytes,
    /// Steps that must complete.
    pub steps: u64,
}

/// Finds the largest value of the size at `varied` that trains within the limits, with the other sizes of `point`. Like
/// a built-in model's ([`max_batch`](crate::max_batch)), it must train in every order of segments that is tried.
///
/// # Errors
/// If the recording is not valid at the other sizes; else like [`Sizes::at`].
pub fn largest_recorded(sizes: &Sizes, at: (usize, &[u64]), limits: RecordedLimits) -> Result<Largest, RecordingError> {
    let mut search = RecordedSearch::new(sizes, at, limits)?;
    search.orders_a_step = ORDERS;
    loop {
        if let Some(found) = search.step(sizes)? {
            return Ok(found);
        }
    }
}

/// The search of [`largest_recorded`], one run at a time, for callers that must do other work in between.
pub struct RecordedSearch {
    varied: usize,
    point: Vec<u64>,
    limits: RecordedLimits,
    range: [u64; 2],
    search: Search,
    best: Option<Best>,
    orders_a_step: u64,
}

/// The largest value known to train.
struct Best {
    value: u64,
    recording: Recording,
    options: Options,
    /// Number of random orders in which it has been tried.
    tried: u64,
}

impl RecordedSearch {
    /// Starts the search.
    ///
    /// # Errors
    /// If the recording is not valid at the other sizes.
    pub fn new(
        sizes: &Sizes,
        (varied, point): (usize, &[u64]),
        limits: RecordedLimits,
    ) -> Result<Self, RecordingError> {
        let range = range_at(sizes, varied, point)?;
        Ok(Self {
            varied,
            point: point.to_vec(),
            limits,
            range,
            search: Search::within(limits.limit, range),
            best: None,
            orders_a_step: ORDERS_A_STEP,
        })
    }

    /// Least and greatest value at which the recording is valid.
    pub const fn range(&self) -> [u64; 2] {
        self.range
    }

    /// The largest value known to train and the smallest known not to.
    pub const fn between(&self) -> [u64; 2] {
        [self.search.good(), self.search.bad()]
    }

    /// Runs the next trial of the same recording; returns the answer if none is left.
    ///
    /// # Errors
    /// Those of [`Sizes::at`].
    pub fn step(&mut self, sizes: &Sizes) -> Result<Option<Largest>, RecordingError> {
        if let Some(value) = self.search.next() {
            let best = self.recording(sizes, value)?;
            let trial = attempt_recorded(&best.recording, &best.options, self.limits.steps);
            if trial.trains() {
                self.best = Some(best);
            }
            self.search.note(value, trial);
            return Ok(None);
        }
        let good = self.search.good();
        if good < self.range[0] {
            return Ok(Some(self.found(sizes)));
        }
        let best = match self.best.take() {
            Some(best) if best.value == good => best,
            _ => self.recording(sizes, good)?,
        };
        if !self.search.knows(good) {
            let trial = attempt_recorded(&best.recording, &best.options, self.limits.steps);
            if !trial.trains() {
                self.search.step_down(trial);
                return Ok(None);
            }
            self.search.note(good, trial);
        }
        let orders = best.tried..(best.tried + self.orders_a_step).min(ORDERS);
        let stopped = stops_in_orders(&best.recording, &best.options, self.limits.steps, orders.clone());
        if let Some(stopped) = stopped {
            self.search.step_down(stopped);
            return Ok(None);
        }
        self.best = Some(Best {
            tried: orders.end,
            ..best
        });
        Ok((orders.end == ORDERS).then(|| self.found(sizes)))
    }

    fn at(&self, value: u64) -> Vec<u64> {
        let mut point = self.point.clone();
        point[self.varied] = value;
        point
    }

    fn recording(&self, sizes: &Sizes, value: u64) -> Result<Best, RecordingError> {
        let run = sizes
            .at(&self.at(value), self.limits.gpu)?
            .with(self.limits.overrides)?;
        let options = Options {
            limit: Some(self.limits.limit),
            ..run.options().clone()
        };
        Ok(Best {
            value,
            recording: run.into_recording(),
            options,
            tried: 0,
        })
    }

    fn found(&self, sizes: &Sizes) -> Largest {
        let ([least, most], good) = (self.range, self.search.good());
        let beyond = match good {
            _ if good < least && least > 1 => Some((least / 2).max(1)),
            _ if good == most => Some(guess(&self.search, most, self.limits.limit)),
            _ => None,
        };
        Largest {
            value: (good >= least).then_some(good),
            tries: self.search.tries().to_vec(),
            range: self.range,
            beyond: beyond.map(|value| sizes.command(&self.at(value))),
        }
    }
}

/// Returns the range of values of one size that are valid with the others of a point.
fn range_at(sizes: &Sizes, varied: usize, point: &[u64]) -> Result<[u64; 2], RecordingError> {
    let holds = |value: u64| {
        let mut point = point.to_vec();
        point[varied] = value;
        sizes.holds(&point).is_ok()
    };
    let all = sizes.ranges();
    let (least, most) = (*all[varied].start(), *all[varied].end());
    let first = (least..=most).take(MOST_TRIED).find(|&value| holds(value));
    let Some(first) = first else {
        return Err(sizes.holds(point).err().unwrap_or(RecordingError::NoStructure));
    };
    let last = (first..=most).take(MOST_TRIED).take_while(|&value| holds(value)).last();
    Ok([first, last.unwrap_or(first)])
}

/// Estimates the answer beyond the recorded range, on the line through the highest two peaks.
fn guess(search: &Search, most: u64, limit: Bytes) -> u64 {
    let peaks = search.trained();
    let slope = match peaks[..] {
        [.., (before, low), (last, high)] => high.saturating_sub(low) / (last - before).max(1),
        [(last, high)] => high / last.max(1),
        [] => 0,
    };
    let room = limit.get().saturating_sub(peaks.last().map_or(0, |(_, high)| *high));
    most + room.checked_div(slope).unwrap_or(most).clamp(1, 7 * most.max(1))
}

/// Maximum number of values checked one by one for the begin or end of a structure.
const MOST_TRIED: usize = 1 << 16;
