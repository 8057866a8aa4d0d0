//! Search for the largest value that trains, between one that does and one that does not.

use vramscope_engine::simulate::{SimulateError, Trial};
use vramscope_engine::units::Bytes;

use super::{End, MOST, MaxBatch};

/// Interval between the largest batch that trains and the smallest that does not.
pub(crate) struct Search {
    limit: u64,
    pub(super) good: u64,
    pub(super) bad: u64,
    tries: Vec<(u64, Trial)>,
    end: Option<(u64, SimulateError)>,
}

impl Search {
    pub(super) const fn new(limit: Bytes) -> Self {
        Self::within(limit, [1, MOST])
    }

    /// Of no batch below the first nor above the second of these.
    pub const fn within(limit: Bytes, [least, most]: [u64; 2]) -> Self {
        Self {
            limit: limit.get(),
            good: least.saturating_sub(1),
            bad: most + 1,
            tries: Vec::new(),
            end: None,
        }
    }

    /// The batch to try next: where the line through two allocated peaks meets the limit, or next to a known batch, or
    /// half-way.
    pub fn next(&self) -> Option<u64> {
        if self.bad - self.good <= 1 {
            return None;
        }
        let trained = self.trained();
        let guess = match trained[..] {
            [] => self.good + 1,
            [(one, _)] => 2 * one,
            [.., (before, low), (last, high)] => {
                let slope = high.saturating_sub(low) / (last - before);
                let more = self.limit.saturating_sub(high).checked_div(slope).unwrap_or(u64::MAX);
                // If another phase holds the peak, the peak only starts to grow at larger batches.
                last.saturating_add(more).min(8 * last)
            }
        };
        Some(match guess {
            // The line lies above the true peaks, but only slightly.
            _ if guess <= self.good => self.good + 1,
            _ if guess < self.bad => guess,
            // Usually just one sample is too many, because of fragmentation.
            _ if self.tries.iter().filter(|(_, trial)| !trial.trains()).count() <= 1 => self.bad - 1,
            _ => self.good + (self.bad - self.good) / 2,
        })
    }

    /// Batches that trained, in rising order, with their allocated peaks.
    pub fn trained(&self) -> Vec<(u64, u64)> {
        let trained = self.tries.iter().filter(|(_, trial)| trial.trains());
        trained
            .map(|(batch, trial)| (*batch, trial.peak_allocated.get()))
            .collect()
    }

    /// The largest batch that trains; one less than the least, where none does.
    pub const fn good(&self) -> u64 {
        self.good
    }

    /// The smallest batch known not to train, or one more than the largest that is tried.
    pub const fn bad(&self) -> u64 {
        self.bad
    }

    /// Batches that were tried, in rising order.
    pub fn tries(&self) -> &[(u64, Trial)] {
        &self.tries
    }

    pub fn note(&mut self, batch: u64, trial: Trial) {
        if trial.trains() {
            self.good = batch;
        } else {
            self.bad = batch;
        }
        let at = self.tries.partition_point(|(other, _)| *other < batch);
        self.tries.insert(at, (batch, trial));
    }

    pub fn knows(&self, batch: u64) -> bool {
        self.tries.iter().any(|(other, _)| *other == batch)
    }

    /// Steps down: the largest batch failed after all, and the next smaller one may be the answer.
    pub fn step_down(&mut self, stopped: Trial) {
        let batch = self.good;
        self.tries.retain(|(other, _)| *other != batch);
        self.note(batch, stopped);
        self.good = batch - 1;
    }

    /// Discards successes, since a batch that trained may fail in later steps; failures remain failures.
    pub(super) fn doubt(&mut self) {
        self.bad = self.good + 1;
        self.tries.retain(|(_, trial)| !trial.trains());
    }

    pub(super) fn refuse(&mut self, batch: u64, error: SimulateError) {
        self.bad = batch;
        self.end = Some((batch, error));
    }

    pub(super) fn result(&self) -> MaxBatch {
        let good = self.good;
        let refused = self.end.clone().filter(|(batch, _)| *batch == good + 1);
        let most = || (good == MOST).then_some(End::Most);
        MaxBatch {
            max_batch: good,
            tries: self.tries.clone(),
            end: refused.map(|(_, why)| End::Refused(why)).or_else(most),
        }
    }
}
