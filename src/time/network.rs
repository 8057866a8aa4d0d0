//! What several GPUs take for what they do together: measured by size, or by their link's data sheet.

use std::collections::BTreeMap;

use super::communication::{Collective, Link};
use super::interpolate::Curve;
use vramscope_benchmark::{Precision, Record};

/// Collectives that were measured, by kind and number of GPUs.
#[derive(Debug, Clone, Default)]
pub struct Collectives {
    curves: BTreeMap<(Collective, u64), Curve>,
}

impl Collectives {
    /// Adds a point: what was done by how many GPUs over how many bytes in all, and its seconds.
    pub fn add(&mut self, kind: Collective, gpus: u64, bytes: f64, seconds: f64) {
        self.curves.entry((kind, gpus)).or_default().push(bytes, seconds);
    }

    /// What a benchmark's record holds of them, in bf16: sizes decide, sums in other types take about as long.
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

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.curves.is_empty()
    }

    /// Seconds over as many GPUs, or over the nearest number that was measured, with that number.
    fn at(&self, kind: Collective, bytes: f64, gpus: u64) -> Option<(f64, u64)> {
        let of_kind = self.curves.iter().filter(|((known, _), _)| *known == kind);
        let ((_, measured), curve) = of_kind.min_by_key(|((_, n), _)| n.abs_diff(gpus))?;
        Some((curve.at(bytes)?, *measured))
    }
}

/// What joins GPUs, and what was measured over it.
#[derive(Debug, Clone)]
pub struct Network<'a> {
    link: Link,
    measured: Option<&'a Collectives>,
    instant: bool,
}

impl<'a> Network<'a> {
    /// A link, with collectives that were measured over it where there are some.
    pub fn new(link: Link, measured: Option<&'a Collectives>) -> Self {
        Self {
            link,
            measured: measured.filter(|measured| !measured.is_empty()),
            instant: false,
        }
    }

    /// The same if nothing that goes over it took any time.
    #[must_use]
    pub fn instant(&self) -> Self {
        Self {
            instant: true,
            ..self.clone()
        }
    }

    /// Seconds of a collective of `bytes` in all. For a number of GPUs that was not measured, the measured time is
    /// taken in proportion to what the link's formula says of both numbers.
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
        // between two sizes on the line through them, beyond the largest in proportion
        assert!(close(network.seconds(Collective::AllReduce, 2e9, 2), 6e-3));
        let eight = 3e-3 * link.all_reduce(1e9, 8) / link.all_reduce(1e9, 2);
        assert!(close(network.seconds(Collective::AllReduce, 1e9, 8), eight));
        let other = network.seconds(Collective::AllGather, 1e9, 2);
        assert!(close(other, link.ring(Collective::AllGather, 1e9, 2)));
        assert_eq!(network.instant().seconds(Collective::AllReduce, 1e9, 2), 0.0);
        assert_eq!(network.seconds(Collective::AllReduce, 1e9, 1), 0.0);
    }
}
