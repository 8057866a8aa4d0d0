//! Groups results that differ only in size into curves, on which cards are compared.

use std::collections::BTreeMap;

use super::{Class, Kernel, Measurement, Record, Shape};
use vramscope_engine::order::sort_by_key;
use vramscope_engine::units::{Bytes, Seconds};

/// Topic of a curve, which determines its axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// Copies: bytes moved per second, against the bytes of the copy.
    Copies,
    /// Matrix products: operations per second, against the operations of the product.
    Products,
    /// Attention: time, memory and operations per second, against length.
    Attention,
    /// Kernels that read their tensors once or a few times: bytes per second, against the bytes moved.
    Passes,
    /// Collectives: bytes per second, against the bytes on each card.
    Collectives,
}

/// One kernel at several sizes, on each of several cards.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// Topic of the kernel.
    pub topic: Topic,
    /// The kernel without its size.
    pub kernel: Kernel,
    /// Points of each record in ascending size, by the order of the given records. Products of different shapes may
    /// have equal size.
    pub curves: Vec<Vec<Point>>,
}

/// One measured size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Size as defined by [`Topic`].
    pub size: u64,
    /// Median time.
    pub time: Seconds,
    /// Shortest and longest sample.
    pub range: [Seconds; 2],
    /// Operations per second for products and attention, bytes per second for everything else; `None` if the record
    /// does not count them.
    pub rate: Option<f64>,
    /// Peak of bytes beyond the inputs.
    pub extra: Option<Bytes>,
    /// Extents of a matrix product.
    pub product: Option<[u64; 3]>,
}

impl Topic {
    /// All topics, in the order of a report.
    pub const ALL: [Self; 5] = [
        Self::Products,
        Self::Attention,
        Self::Copies,
        Self::Passes,
        Self::Collectives,
    ];

    /// Topic of a class; `None` for a launch, which has no size.
    pub const fn of(class: Class) -> Option<Self> {
        Some(match class {
            Class::DeviceCopy | Class::HostToDevice | Class::DeviceToHost | Class::PeerCopy => Self::Copies,
            Class::Launch => return None,
            Class::Gemm => Self::Products,
            Class::Attention => Self::Attention,
            class if class.is_collective() => Self::Collectives,
            _ => Self::Passes,
        })
    }

    /// Returns true if rates are operations per second rather than bytes.
    pub const fn counts_operations(self) -> bool {
        matches!(self, Self::Products | Self::Attention)
    }
}

/// All kernels that the records measured, grouped by everything except size. Kernels of one topic are adjacent, in the
/// order of the records.
pub fn families(records: &[&Record]) -> Vec<Family> {
    let mut places = BTreeMap::new();
    let mut all: Vec<Family> = Vec::new();
    for (which, record) in records.iter().enumerate() {
        for result in &record.results {
            let Some((topic, kernel, point)) = placed(result) else {
                continue;
            };
            let place = *places.entry(kernel.label()).or_insert_with(|| {
                all.push(Family {
                    topic,
                    kernel,
                    curves: vec![Vec::new(); records.len()],
                });
                all.len() - 1
            });
            all[place].curves[which].push(point);
        }
    }
    for curve in all.iter_mut().flat_map(|family| &mut family.curves) {
        sort_by_key(curve, |point| point.size);
    }
    sort_by_key(&mut all, |family| {
        Topic::ALL.iter().position(|topic| *topic == family.topic)
    });
    all
}

fn placed(result: &Measurement) -> Option<(Topic, Kernel, Point)> {
    let topic = Topic::of(result.kernel.class)?;
    let measured = result.measured()?;
    let summary = measured.summary.as_ref()?;
    let mut kernel = result.kernel.clone();
    let shape = &mut kernel.shape;
    let product = shape.m.zip(shape.n).zip(shape.k).map(|((m, n), k)| [m, n, k]);
    let size = match topic {
        Topic::Copies | Topic::Collectives => shape.bytes.take(),
        Topic::Products => {
            (shape.m, shape.n, shape.k) = (None, None, None);
            result.kernel.flops()
        }
        Topic::Attention => shape.length.take(),
        Topic::Passes => {
            *shape = Shape::default();
            result.bytes
        }
    };
    let seconds = |ns: u64| Seconds::new(ns as f64 / 1e9);
    let point = Point {
        size: size.filter(|n| *n > 0)?,
        time: seconds(summary.median_ns),
        range: [seconds(summary.min_ns), seconds(summary.max_ns)],
        rate: if topic.counts_operations() {
            result.flops_per_s()
        } else {
            result.bytes_per_s()
        },
        extra: measured.peak_extra_bytes.map(Bytes::new),
        product,
    };
    Some((topic, kernel, point))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200() -> Record {
        Record::read(include_str!("../../tests/data/records/h200.json")).expect("a record")
    }

    #[test]
    fn every_timed_kernel_but_the_launch_is_on_one_curve() {
        let record = h200();
        let families = families(&[&record, &record]);
        let points: usize = families.iter().map(|f| f.curves[0].len()).sum();
        let timed = record.results.iter().filter(|r| r.time().is_some()).count();
        assert_eq!(points, timed - 1);
        for family in &families {
            assert_eq!(family.curves[0], family.curves[1]);
            assert!(family.curves[0].is_sorted_by_key(|p| p.size));
        }
        let topics: Vec<Topic> = families.iter().map(|f| f.topic).collect();
        let first = |topic| topics.iter().position(|t| *t == topic);
        assert!(first(Topic::Products) < first(Topic::Attention) && first(Topic::Attention) < first(Topic::Copies));
    }

    #[test]
    fn a_family_is_named_by_what_its_points_share() {
        let record = h200();
        let families = families(&[&record]);
        let named = |name: &str| families.iter().find(|f| f.kernel.label() == name).expect(name);
        assert_eq!(named("device_copy").curves[0].len(), 9);
        assert_eq!(named("attention cudnn bf16 1x16x64 causal forward").curves[0].len(), 8);
        let products = named("gemm bf16 nt");
        let largest = products.curves[0].iter().find(|p| p.product == Some([8192; 3]));
        let largest = largest.expect("the square product");
        assert_eq!(largest.size, 2 * 8192 * 8192 * 8192);
        assert!(largest.rate.is_some_and(|rate| (5e14..1e15).contains(&rate)));
    }
}
