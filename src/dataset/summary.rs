//! Percentiles, histogram, and what padding costs, of the lengths of samples.

/// Most bars of a histogram.
const BARS: u64 = 40;

/// Lengths of all samples, shortest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary(Vec<u64>);

/// A bar of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bin {
    /// Smallest length in it.
    pub from: u64,
    /// Smallest length beyond it.
    pub to: u64,
    /// Number of samples.
    pub samples: usize,
}

impl Summary {
    /// Sorts lengths.
    pub fn of(mut lengths: Vec<u64>) -> Self {
        lengths.sort_unstable();
        Self(lengths)
    }

    /// Length that a percentage of samples does not exceed; the least such.
    pub fn percentile(&self, percent: f64) -> u64 {
        let rank = (percent / 100.0 * self.0.len() as f64).ceil() as usize;
        let at = rank.clamp(1, self.0.len().max(1)) - 1;
        self.0.get(at).copied().unwrap_or_default()
    }

    /// Bars of equal width, which is round, from 0 to the longest.
    pub fn histogram(&self) -> Vec<Bin> {
        let longest = self.0.last().copied().unwrap_or_default();
        let width = round_up(longest / BARS + 1);
        let bins = longest / width + 1;
        let samples_below = |end: u64| self.0.partition_point(|length| *length < end);
        let bin = |i: u64| {
            let (from, to) = (i * width, (i + 1).saturating_mul(width));
            let samples = samples_below(to) - samples_below(from);
            Bin { from, to, samples }
        };
        (0..bins).map(bin).collect()
    }

    /// Share of padding in micro-batches that are drawn at random and padded to their longest sample: what is expected,
    /// exactly, where samples are drawn with replacement.
    pub fn padding(&self, batch: u64) -> f64 {
        let count = self.0.len() as f64;
        // The longest of a batch is at most the sample of a rank if all are: the power of that sample's share.
        let below = |rank: usize| power(rank as f64 / count, batch);
        let longest = self.0.iter().enumerate();
        let longest: f64 = longest
            .map(|(i, length)| *length as f64 * (below(i + 1) - below(i)))
            .sum();
        let mean = self.0.iter().map(|length| *length as f64).sum::<f64>() / count;
        if longest > 0.0 {
            (1.0 - mean / longest).max(0.0)
        } else {
            0.0
        }
    }

    /// The longest samples, which one micro-batch may hold: the longest first.
    pub fn worst(&self, batch: u64) -> Vec<u64> {
        self.0.iter().rev().take(batch as usize).copied().collect()
    }
}

/// Power by squares: the platform's own differ.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent % 2 == 1 {
            result *= base;
        }
        base *= base;
        exponent /= 2;
    }
    result
}

/// The next 1, 2 or 5 times a power of ten.
fn round_up(least: u64) -> u64 {
    let mut power = 1u64;
    loop {
        if let Some(round) = [1, 2, 5].into_iter().map(|n| n * power).find(|round| *round >= least) {
            return round;
        }
        // Lengths end long before numbers do.
        match power.checked_mul(10).filter(|power| *power < u64::MAX / 10) {
            Some(next) => power = next,
            None => return least,
        }
    }
}
