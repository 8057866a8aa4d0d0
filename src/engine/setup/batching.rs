//! Batches samples of different lengths, padded or packed.

use super::{Packing, Setting, Setup, TrainerKind};

/// Most samples of a batch that are listed one by one.
const MOST_LISTED: u64 = 65_536;

impl Setup {
    /// Returns true if samples share one row.
    pub fn is_packed(&self) -> bool {
        self.packing == Packing::Packed && !self.lengths.is_empty()
    }

    /// Returns true if some sample is shorter than its row.
    pub fn is_padded(&self) -> bool {
        let batched = self.batched();
        batched.packing == Packing::Padded && batched.lengths.iter().any(|&length| length != batched.seq)
    }

    /// Positions of the longest sample of a batched setup; packed samples each count their own.
    pub fn longest(&self) -> u64 {
        self.lengths.iter().copied().max().unwrap_or(self.seq)
    }

    /// Positions of each sample of a micro-batch, and how many of them, at its end, have labels.
    fn labelled(&self) -> impl Iterator<Item = (u64, u64)> {
        let samples = self.lengths.len().max(self.labels.len()) as u64;
        // All alike are counted once (`of_all_alike`).
        (0..samples).map(|at| {
            let length = self.lengths.get(at as usize).copied().unwrap_or(self.seq);
            let labels = self.labels.get(at as usize).copied().or(self.completion);
            (length, labels.unwrap_or(length))
        })
    }

    /// Positions of a sample and of its labels, where all samples are alike.
    fn of_all_alike(&self) -> Option<(u64, u64)> {
        let is_alike = self.lengths.is_empty() && self.labels.is_empty();
        is_alike.then(|| (self.seq, self.completion.unwrap_or(self.seq)))
    }

    /// Labels of a micro-batch that count: the last positions of each sample, but never its first, which follows
    /// nothing.
    pub fn counted_labels(&self) -> u64 {
        let counted = |(length, labels): (u64, u64)| length.saturating_sub(1).min(labels);
        match self.of_all_alike() {
            Some(sample) => self.batch.saturating_mul(counted(sample)),
            None => self
                .labelled()
                .fold(0, |sum, sample| sum.saturating_add(counted(sample))),
        }
    }

    /// Positions of each row from the first one that has a label in any of them, and the one before it.
    pub fn from_first_label(&self) -> u64 {
        let first = |(length, labels): (u64, u64)| length.saturating_sub(labels).max(1);
        let earliest = match self.of_all_alike() {
            Some(sample) => first(sample),
            None => self.labelled().map(first).min().unwrap_or(1),
        };
        (self.seq + 1).saturating_sub(earliest)
    }

    /// Repeats what is told of each sample for as many batches of the same samples in one.
    pub fn repeat_samples(&mut self, times: u64) {
        self.batch = self.batch.saturating_mul(times);
        let times = times as usize;
        self.lengths = self.lengths.repeat(times);
        self.labels = self.labels.repeat(times);
        // The sizes of all samples' images are a list of all samples; those of one sample are not.
        if !self.image_counts.is_empty() {
            self.image_counts = self.image_counts.repeat(times);
            self.image_sizes = self.image_sizes.repeat(times);
        }
    }

    /// Images of one sample, of all samples where they differ.
    pub fn given_images(&self) -> u64 {
        match self.image_counts.is_empty() {
            true => self.images,
            false => self
                .image_counts
                .iter()
                .fold(0, |sum, count| sum.saturating_add(*count)),
        }
    }

    /// What is made of the images of one sample, for all samples of a micro-batch; where samples differ, it is of all
    /// samples already.
    pub fn of_all_samples<T: Copy>(&self, images: Vec<T>) -> Vec<T> {
        match self.image_counts.is_empty() {
            true => images.repeat(self.batch as usize),
            false => images,
        }
    }

    /// The setups of single samples, where their images differ, each with its own images; otherwise the setup itself.
    pub fn samples_with_images(&self) -> Vec<Self> {
        if self.image_counts.is_empty() {
            return vec![self.clone()];
        }
        let mut sizes = self.image_sizes.iter().copied();
        let of_sample = |count: &u64| Self {
            images: *count,
            image_counts: Vec::new(),
            image_sizes: sizes.by_ref().take(*count as usize).collect(),
            ..self.clone()
        };
        self.image_counts.iter().map(of_sample).collect()
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

    /// Returns the setup with `batch` and `seq` set by the lengths of the samples, if those are given, and rows padded as
    /// asked.
    #[must_use]
    pub fn batched(&self) -> Self {
        let mut setup = self.clone();
        let multiple = self.pad_to_multiple_of.max(1);
        let samples = self.lengths.len() as u64;
        if samples == 0 {
            if !self.seq.is_multiple_of(multiple) && self.batch <= MOST_LISTED {
                setup.lengths = vec![self.seq; self.batch as usize];
                setup.seq = self.seq.checked_next_multiple_of(multiple).unwrap_or(self.seq);
            }
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
            let longest = self.lengths.iter().copied().max().unwrap_or(0);
            (samples, longest.checked_next_multiple_of(multiple).unwrap_or(longest))
        };
        setup
    }
}

impl Setting {
    /// Returns true if the lengths or image sizes of a setup decide the setting's value.
    pub fn is_decided(self, setup: &Setup) -> bool {
        match self {
            Self::Batch | Self::Seq => !setup.lengths.is_empty(),
            Self::Images => !setup.image_sizes.is_empty() || !setup.image_counts.is_empty(),
            Self::Image | Self::Grid => !setup.image_sizes.is_empty(),
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
    fn rows_are_padded_to_a_multiple() {
        let mut setup = Setup {
            batch: 2,
            seq: 583,
            pad_to_multiple_of: 8,
            ..Setup::default()
        };
        let rows = setup.batched();
        assert_eq!(
            (rows.lengths.as_slice(), rows.batch, rows.seq),
            (&[583, 583][..], 2, 584)
        );
        assert!(setup.is_padded() && rows.is_padded());
        assert_eq!(rows.batched(), rows);
        setup.seq = 584;
        assert_eq!(setup.batched(), setup);
        setup.lengths = vec![583, 12];
        assert_eq!(setup.batched().seq, 584);
        setup.lengths = vec![584];
        assert!(!setup.is_padded());
    }

    #[test]
    fn labels_of_samples_that_differ() {
        let mut setup = Setup {
            batch: 2,
            seq: 900,
            labels: vec![149, 348],
            completion: Some(10),
            ..Setup::default()
        };
        assert_eq!((setup.counted_labels(), setup.from_first_label()), (149 + 348, 349));
        setup.lengths = vec![900, 400];
        assert_eq!((setup.counted_labels(), setup.from_first_label()), (149 + 348, 849));
        setup.repeat_samples(2);
        assert_eq!((setup.batch, setup.counted_labels()), (4, 2 * (149 + 348)));
    }

    #[test]
    fn images_of_samples_that_differ() {
        let mut setup = Setup {
            batch: 2,
            images: 1,
            image_sizes: vec![[10, 20], [30, 40], [50, 60]],
            ..Setup::default()
        };
        assert_eq!(setup.of_all_samples(vec![7]).len(), 2);
        setup.image_counts = vec![1, 2];
        assert_eq!(setup.of_all_samples(vec![7; 3]).len(), 3);
        let samples = setup.samples_with_images();
        let sizes: Vec<_> = samples.iter().map(|sample| sample.image_sizes.as_slice()).collect();
        assert_eq!(sizes, [&[[10, 20]][..], &[[30, 40], [50, 60]]]);
        setup.repeat_samples(2);
        assert_eq!(
            (setup.image_counts.as_slice(), setup.image_sizes.len()),
            (&[1, 2, 1, 2][..], 6)
        );
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
