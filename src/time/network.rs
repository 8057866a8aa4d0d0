//! Times of collectives between GPUs: measured by size, or computed from the data sheet of the interconnect.

use std::collections::BTreeMap;

use super::communication::{Collective, Link};
use super::interpolate::Curve;
use vramscope_benchmark::{Precision, Record};

/// Measured collectives by kind and number of GPUs.
#[derive(Debug, Clone, Default)]
pub struct Collectives {
    curves: BTreeMap<(Collective, u64), Curve>,
}

impl Collectives {
    /// Adds a point: kind, number of GPUs, size of the buffer in bytes, and time in seconds.
    pub fn add(&mut self, kind: Collective, gpus: u64, bytes: f64, seconds: f64) {
        self.curves.entry((kind, gpus)).or_default().push(bytes, seconds);
    }

    /// Takes the bf16 collectives of a benchmark record; the time depends on bytes, hardly on the dtype.
    pub fn of_record(record: &Record) -> Self {
        let mut out = Self::default();
        for result in &record.results {
            let (kernel, time) = (&result.kernel, result.time());
            let kind = Collective::by_name(kernel.class.name()).filter(|_| kernel.precision == Some(Precision::Bf16));
            if let (Some(kind), Some(time), Some(bytes), Some(gpus)) =
                (kind, time, kernel.shape.bytes, kernel.shape.devices)
            {
                out.add(kind, gpus, bytes as f64, time.get());
            }
        }
        out
    }

    /// Returns true if nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.curves.is_empty()
    }

    /// Seconds on the measured number of GPUs closest to `gpus`, and that number.
    fn at(&self, kind: Collective, bytes: f64, gpus: u64) -> Option<(f64, u64)> {
        let of_kind = self.curves.iter().filter(|((known, _), _)| *known == kind);
        let ((_, measured), curve) = of_kind.min_by_key(|((_, n), _)| n.abs_diff(gpus))?;
        Some((curve.at(bytes)?, *measured))
    }
}

/// Interconnect of GPUs, with measurements of it.
#[derive(Debug, Clone)]
pub struct Network<'a> {
    link: Link,
    measured: Option<&'a Collectives>,
    instant: bool,
}

impl<'a> Network<'a> {
    /// An interconnect, with collectives measured over it if available.
    pub fn new(link: Link, measured: Option<&'a Collectives>) -> Self {
        Self {
            link,
            measured: measured.filter(|measured| !measured.is_empty()),
            instant: false,
        }
    }

    /// The interconnect if communication took no time.
    #[must_use]
    pub fn instant(&self) -> Self {
        Self {
            instant: true,
            ..self.clone()
        }
    }

    /// Seconds of a collective over a buffer of `bytes`. For a number of GPUs that was not measured, the measured time
    /// is scaled by the ratio of the interconnect's formula for both numbers.
    pub fn seconds(&self, kind: Collective, bytes: f64, gpus: u64) -> f64 {
        if self.instant || gpus < 2 {
            return 0.0;
        }
        let formula = |gpus| self.link.seconds(kind, bytes, gpus);
        match self.measured.and_then(|measured| measured.at(kind, bytes, gpus)) {
            Some((seconds, measured)) if measured == gpus => seconds,
            Some((seconds, measured)) => seconds * formula(gpus) / formula(measured),
            None => formula(gpus),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_goes_before_the_formula() {
        let link = Link::nvlink(900e9);
        let mut measured = Collectives::default();
        measured.add(Collective::AllReduce, 2, 1e6, 30e-6);
        measured.add(Collective::AllReduce, 2, 1e9, 3e-3);
        let network = Network::new(link, Some(&measured));
        let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
        assert!(close(network.seconds(Collective::AllReduce, 1e9, 2), 3e-3));
        // Linear between two sizes, proportional beyond the largest.
        assert!(close(network.seconds(Collective::AllReduce, 2e9, 2), 6e-3));
        let eight = 3e-3 * link.all_reduce(1e9, 8) / link.all_reduce(1e9, 2);
        assert!(close(network.seconds(Collective::AllReduce, 1e9, 8), eight));
        let other = network.seconds(Collective::AllGather, 1e9, 2);
        assert!(close(other, link.ring(Collective::AllGather, 1e9, 2)));
        assert_eq!(network.instant().seconds(Collective::AllReduce, 1e9, 2), 0.0);
        assert_eq!(network.seconds(Collective::AllReduce, 1e9, 1), 0.0);
    }
}
