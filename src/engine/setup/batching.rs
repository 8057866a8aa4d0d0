//! Batches samples of different lengths, padded or packed.

use super::{Packing, Setting, Setup, TrainerKind};

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

    /// Labels of a micro-batch that count: the last `completion` positions of each sample, but never its
    /// first, which follows nothing.
    pub fn counted_labels(&self) -> u64 {
        let counted = |length: u64| length.saturating_sub(1).min(self.completion.unwrap_or(length));
        match self.lengths.as_slice() {
            [] => self.batch.saturating_mul(counted(self.seq)),
            lengths => lengths
                .iter()
                .fold(0, |sum, &length| sum.saturating_add(counted(length))),
        }
    }

    /// Positions of each row from the first one that has a label in any of them, and the one before it.
    pub fn from_first_label(&self) -> u64 {
        let first = |length: u64| length.saturating_sub(self.completion.unwrap_or(length)).max(1);
        let earliest = match self.lengths.as_slice() {
            [] => first(self.seq),
            lengths => lengths.iter().map(|length| first(*length)).min().unwrap_or(1),
        };
        (self.seq + 1).saturating_sub(earliest)
    }

    /// Tokens of a sample's prompt and of its completion, which TRL's losses count.
    pub fn prompt_and_completion(&self) -> [u64; 2] {
        let longest = self.seq.saturating_sub(1);
        let completion = self.completion.unwrap_or(longest).min(longest);
        [self.seq - completion, completion]
    }

    /// Returns true if the time of a step is estimated: neither that of compiled steps nor that of generating is.
    pub fn is_timed(&self) -> bool {
        !self.compile && self.trainer != TrainerKind::TrlGrpo
    }

    /// Micro-batches that one generation of GRPO is for.
    pub fn generated_micro_batches(&self) -> u64 {
        self.steps_per_generation.unwrap_or(self.accum).max(1)
    }

    /// Returns true if GRPO makes log-probabilities of the policy before it trains on a generation: the weights change
    /// before it is used up, or vLLM's probabilities are corrected by them.
    pub fn makes_old_log_probs(&self) -> bool {
        let every = self
            .generated_micro_batches()
            .saturating_mul(self.num_iterations.max(1));
        !self.accum.is_multiple_of(every) || self.generation.is_vllm()
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

impl Setting {
    /// Returns true if the lengths or image sizes of a setup decide the setting's value.
    pub fn is_decided(self, setup: &Setup) -> bool {
        match self {
            Self::Batch | Self::Seq => !setup.lengths.is_empty(),
            Self::Images | Self::Image | Self::Grid => !setup.image_sizes.is_empty(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_begin_before_the_first_label_of_the_batch() {
        let mut setup = Setup {
            seq: 900,
            completion: Some(100),
            ..Setup::default()
        };
        assert_eq!(setup.from_first_label(), 101);
        setup.lengths = vec![900, 300];
        assert_eq!(setup.from_first_label(), 701);
        setup.completion = None;
        assert_eq!(setup.from_first_label(), 900);
    }

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
