//! Quantiles of measured samples.

use std::fmt;

/// Median, 95th percentile and maximum of a sample, each an observed value.
#[derive(Debug, Clone, Copy)]
pub struct Quantiles {
    median: f64,
    p95: f64,
    most: f64,
}

impl Quantiles {
    /// Quantiles of a sample; NaN for an empty one.
    pub fn of(sample: &[f64]) -> Self {
        let mut sorted = sample.to_vec();
        sorted.sort_by(f64::total_cmp);
        // Use the nearest rank.
        let at = |share: f64| {
            let rank = (share * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
        };
        Self {
            median: at(0.5),
            p95: at(0.95),
            most: at(1.0),
        }
    }
}

impl fmt::Display for Quantiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.1}{:>9.1}{:>9.1}", self.median, self.p95, self.most)
    }
}
