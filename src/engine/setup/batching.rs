//! Batches samples of different lengths, padded or packed.

use serde::{Deserialize, Serialize};

use super::Setup;

/// Layout of samples of different lengths in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    /// Each in a row of its own, padded to the longest.
    #[default]
    Padded,
    /// One after the other in a single row, separated by their position ids.
    Packed,
}

impl Setup {
    /// Returns true if samples share one row.
    pub fn is_packed(&self) -> bool {
        self.packing == Packing::Packed && !self.lengths.is_empty()
    }

    /// Returns true if some sample is shorter than its row.
    pub fn is_padded(&self) -> bool {
        self.packing == Packing::Padded && self.lengths.iter().any(|&length| length != self.lengths[0])
    }

    /// Positions of the longest sample of a batched setup; packed samples each count their own.
    pub fn longest(&self) -> u64 {
        self.lengths.iter().copied().max().unwrap_or(self.seq)
    }

    /// Returns the setup with `batch` and `seq` set by the lengths of the samples, if those are given.
    #[must_use]
    pub fn batched(&self) -> Self {
        let mut setup = self.clone();
        let samples = self.lengths.len() as u64;
        if samples == 0 {
            return setup;
        }
        (setup.batch, setup.seq) = if self.is_packed() {
            (
                1,
                self.lengths
                    .iter()
                    .fold(0, |sum: u64, &length| sum.saturating_add(length)),
            )
        } else {
            (samples, self.lengths.iter().copied().max().unwrap_or(0))
        };
        setup
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_sample_decides_unless_they_are_packed() {
        let mut setup = Setup {
            lengths: vec![100, 900, 20],
            ..Setup::default()
        };
        let padded = setup.batched();
        assert_eq!((padded.batch, padded.seq), (3, 900));
        assert!(setup.is_padded() && !setup.is_packed());
        setup.packing = Packing::Packed;
        let packed = setup.batched();
        assert_eq!((packed.batch, packed.seq), (1, 1020));
        assert!(setup.is_packed() && !setup.is_padded());
        setup.lengths.clear();
        assert_eq!(setup.batched(), setup);
    }
}
