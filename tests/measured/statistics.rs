//! Statistics of relative errors.

/// Summary of relative errors, (predicted − measured) ÷ measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// Number of errors.
    pub count: usize,
    /// Median of their magnitudes.
    pub median: f64,
    /// 90th percentile of their magnitudes: the smallest that at least nine in ten do not exceed.
    pub p90: f64,
    /// Largest magnitude.
    pub max: f64,
    /// Largest under-prediction, as a magnitude.
    pub worst_under: f64,
}

impl Statistics {
    /// Summarises errors; `None` if there are none.
    pub fn of(errors: &[f64]) -> Option<Self> {
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let max = *sizes.last()?;
        let middle = sizes.len() / 2;
        let median = match sizes.len() % 2 {
            1 => sizes[middle],
            _ => (sizes[middle - 1] + sizes[middle]) / 2.0,
        };
        let p90 = sizes[(sizes.len() * 9 / 10).min(sizes.len() - 1)];
        let worst_under = errors.iter().fold(0.0, |worst, error| f64::max(worst, -error));
        Some(Self {
            count: sizes.len(),
            median,
            p90,
            max,
            worst_under,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Statistics;

    #[test]
    fn magnitudes_are_ranked() {
        let errors: Vec<f64> = (1..=10)
            .map(|i| if i % 2 == 0 { f64::from(i) } else { -f64::from(i) })
            .collect();
        let expected = Statistics {
            count: 10,
            median: 5.5,
            p90: 10.0,
            max: 10.0,
            worst_under: 9.0,
        };
        assert_eq!(Statistics::of(&errors), Some(expected));
        assert_eq!(
            Statistics::of(&[0.5]).map(|s| (s.median, s.p90, s.worst_under)),
            Some((0.5, 0.5, 0.0))
        );
        assert_eq!(Statistics::of(&[]), None);
    }
}
