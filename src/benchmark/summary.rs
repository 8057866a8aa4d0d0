//! Summarises the samples of a measurement, without outliers.

use serde::{Deserialize, Serialize};

/// Samples in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Summary {
    /// The median, in nanoseconds; of an even number, the mean of the middle two, rounded down.
    pub median_ns: u64,
    /// The shortest sample.
    pub min_ns: u64,
    /// The longest sample.
    pub max_ns: u64,
    /// The spread: the median of the distances to the median. Absent where an older record does not
    /// say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_deviation_ns: Option<u64>,
    /// Samples far from the others. They are kept, and count in the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outliers: Option<Outliers>,
}

/// Samples far from the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Outliers {
    /// How they were found, with its source.
    pub method: String,
    /// Their places among the samples, counted from 0.
    pub places: Vec<u32>,
}

/// Modified Z-score above which a sample is an outlier: 0.6745 × distance ÷ median absolute deviation (B. Iglewicz and
/// D. Hoaglin, "How to Detect and Handle Outliers", ASQC, 1993).
const HIGHEST_SCORE: f64 = 3.5;

/// Median absolute deviation of a normal distribution, in units of its standard deviation.
const NORMAL_DEVIATION: f64 = 0.6745;

impl Summary {
    /// Summarises samples; `None` if there are none.
    pub fn of(samples_ns: &[u64]) -> Option<Self> {
        let in_order = sorted(samples_ns.to_vec());
        let median_ns = median(&in_order)?;
        let distances = in_order.iter().map(|ns| ns.abs_diff(median_ns)).collect();
        let deviation = median(&sorted(distances))?;
        let is_far = |ns: u64| {
            let distance = ns.abs_diff(median_ns) as f64;
            deviation > 0 && NORMAL_DEVIATION * distance / deviation as f64 > HIGHEST_SCORE
        };
        let far = (0u32..).zip(samples_ns).filter(|(_, ns)| is_far(**ns));
        let places: Vec<u32> = far.map(|(place, _)| place).collect();
        Some(Self {
            median_ns,
            min_ns: in_order[0],
            max_ns: in_order[in_order.len() - 1],
            median_deviation_ns: Some(deviation),
            outliers: Some(Outliers {
                method: "modified Z-score above 3.5 (Iglewicz and Hoaglin, 1993)".into(),
                places,
            }),
        })
    }
}

fn sorted(mut samples: Vec<u64>) -> Vec<u64> {
    samples.sort_unstable();
    samples
}

fn median(sorted: &[u64]) -> Option<u64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(sorted[middle - 1].midpoint(sorted[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_a_wild_sample_and_names_it() {
        let summary = Summary::of(&[103, 100, 101, 900, 102, 99]).expect("samples");
        assert_eq!((summary.median_ns, summary.min_ns, summary.max_ns), (101, 99, 900));
        assert_eq!(summary.median_deviation_ns, Some(1));
        assert_eq!(summary.outliers.expect("searched").places, [3]);
    }

    #[test]
    fn equal_samples_have_no_spread_and_none_have_no_summary() {
        let summary = Summary::of(&[7, 7, 7]).expect("samples");
        assert_eq!((summary.median_ns, summary.median_deviation_ns), (7, Some(0)));
        assert!(summary.outliers.expect("searched").places.is_empty());
        assert_eq!(Summary::of(&[]), None);
    }
}
