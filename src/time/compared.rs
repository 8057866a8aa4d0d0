//! PyTorch's kernels on a card that `vramscope bench` measured.
//!
//! A record holds about a thousand kernels, many of them the program's own. A step launches PyTorch's, of any size, and some
//! kinds that a record lacks. The program comes with 12,745 of PyTorch's kernels, measured on one card, and with what
//! `bench` measured on that card (`measured/bench_h200.json`). A kernel of a step takes what PyTorch's takes there, carried
//! to this card by both data sheets, times a ratio: what the same kernel of `bench` took on this card over what it took
//! there, carried alike. Between measured points the ratio is interpolated; it changes far less from size to size than
//! times do. A kind that the record lacks keeps its carried time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use super::carry::Carry;
use super::interpolate::{Field, Ratios};
use super::kernels::{KernelTime, Kernels, sized, substitutes};
use super::kinds::{Location, curve_bytes, curve_of, location_of};
use super::measured::{Point, points_of};
use super::spread::Source;
use vramscope_engine::dtype::DType;
use vramscope_engine::tape::work::{Class, Launch};

/// What `bench` measured on the card whose PyTorch kernels come with the program.
const REFERENCE: &str = include_str!("measured/bench_h200.json");

#[derive(Deserialize)]
struct File {
    kernels_us: BTreeMap<String, Vec<Vec<f64>>>,
}

/// Kernels of another card, and what this card takes of their time.
#[derive(Debug)]
pub(super) struct Compared {
    own: Arc<Kernels>,
    carry: Carry,
    curves: BTreeMap<(String, u64), Ratios>,
    fields: BTreeMap<(Class, u64), Field>,
}

impl Compared {
    /// Compares points of a card with those of the card whose kernels are `own`; `carry` goes from that one to this.
    pub fn of<'a>(points: impl Iterator<Item = Point<'a>>, own: Arc<Kernels>, carry: Carry) -> Self {
        let mut out = Self {
            own,
            carry,
            curves: BTreeMap::new(),
            fields: BTreeMap::new(),
        };
        for point in points {
            out.add(&point);
        }
        out
    }

    /// Adds the ratio of a point: to what `bench` measured there, or told from its points; of kinds that it did not
    /// measure there, to PyTorch's.
    fn add(&mut self, (kind, dtype, extents, seconds): &Point<'_>) {
        let (width, reference) = (dtype.width(), reference());
        let known = reference.known.get(&(*kind, *dtype, extents.to_vec())).copied();
        let (launch, other) = match location_of(kind, *dtype, extents) {
            Location::Field { class, extents, shared } => {
                let launch = sized(class, *dtype, extents, shared);
                let found = || reference.kernels.time(&launch).or_else(|| self.own.time(&launch));
                (launch, known.or_else(found))
            }
            Location::Curve(ref name, x) => {
                let bytes = Launch {
                    read: curve_bytes(name, x, width),
                    written: 0,
                    ..sized(Class::Pointwise, *dtype, [0; 4], 1)
                };
                let of = |kernels: &Kernels| kernels.on_curve(name, width, x);
                (
                    bytes,
                    known.or_else(|| of(&reference.kernels).or_else(|| of(&self.own))),
                )
            }
        };
        let Some(other) = other else { return };
        let ratio = seconds / self.carry.kernel(&launch, other);
        match location_of(kind, *dtype, extents) {
            Location::Field { class, extents, .. } => {
                self.fields.entry((class, width)).or_default().push(extents, ratio)
            }
            Location::Curve(name, x) => self.curves.entry((name, width)).or_default().push(x, ratio),
        }
    }

    /// Seconds of a kernel on this card; `None` if its kind was not measured on the other.
    pub fn kernel_time(&self, launch: &Launch) -> Option<KernelTime> {
        let there = self.own.time(launch)?;
        let carried = self.carry.kernel(launch, there);
        Some(match self.ratio(launch) {
            Some(ratio) => KernelTime {
                seconds: carried * ratio,
                source: Source::Measured,
            },
            None => KernelTime {
                seconds: carried,
                source: self.carry.source(),
            },
        })
    }

    /// Ratio of this card's time to the carried one, if kernels of this kind were compared.
    fn ratio(&self, launch: &Launch) -> Option<f64> {
        let width = if launch.dtype.width() == 2 { 2 } else { 4 };
        if let Some((name, x)) = curve_of(launch) {
            let curve = |name: &str| self.curves.get(&(name.to_owned(), width));
            return match curve(name) {
                Some(ratios) => ratios.at(x),
                None => curve("vectorised")?.at(launch.bytes()),
            };
        }
        let field = |class: Class| self.fields.get(&(class, width));
        let substitute = || substitutes(launch.class).into_iter().find_map(field);
        field(launch.class).or_else(substitute)?.at(launch.extents)
    }

    /// Seconds of a copy between the host's pinned memory and the card.
    pub fn transfer(&self, to_host: bool, bytes: u64) -> Option<f64> {
        Some(self.carry.transfer(self.own.transfer(to_host, bytes)?))
    }
}

/// What `bench` measured on the other card.
#[derive(Default)]
struct Reference {
    /// Seconds of each kernel by kind, dtype and extents.
    known: HashMap<(&'static str, DType, Vec<u64>), f64>,
    /// The same kernels, to tell others from.
    kernels: Kernels,
}

fn reference() -> &'static Reference {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    static READ: OnceLock<Reference> = OnceLock::new();
    // The file is part of the program, and a test reads it.
    let file = FILE.get_or_init(|| serde_json::from_str(REFERENCE).ok());
    READ.get_or_init(|| {
        let mut out = Reference::default();
        let points = file.iter().filter_map(|file| points_of(&file.kernels_us).ok());
        for (kind, dtype, extents, seconds) in points.flatten() {
            out.kernels.add(kind, dtype, &extents, seconds);
            out.known.insert((kind, dtype, extents), seconds);
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{H200, Measured};
    use vramscope_benchmark::{Class as BenchClass, Outcome, Record};
    use vramscope_engine::tape::SdpaBackend;
    use vramscope_engine::tape::work::{Fused, Layout};

    fn own() -> Measured {
        Measured::read(H200).expect("it comes with the program")
    }

    fn h200() -> Record {
        Record::read(include_str!("../../tests/data/records/h200.json")).expect("a record")
    }

    /// A product, a norm and an elementwise kernel, which a record holds.
    fn held() -> [Launch; 3] {
        let pointwise = Launch {
            name: "add",
            read: 2 << 27,
            written: 1 << 27,
            ..sized(Class::Pointwise, DType::Bf16, [0; 4], 1)
        };
        [
            sized(Class::Matmul(Layout::Tn), DType::Bf16, [3000, 2560, 5000, 1], 1),
            sized(Class::LayerNormBackward, DType::F32, [6000, 1024, 0, 0], 1),
            pointwise,
        ]
    }

    /// Fused attention in fp32, which that record lacks.
    fn lacking() -> Launch {
        let fused = Fused {
            backend: SdpaBackend::Efficient,
            backward: true,
            causal: false,
            masked: false,
        };
        sized(Class::Attention(fused), DType::F32, [12, 3136, 3136, 64], 1)
    }

    fn time_by(record: &Record, launch: &Launch) -> KernelTime {
        Measured::of_record(record, &own())
            .kernels
            .kernel_time(launch)
            .expect("its kind is known")
    }

    #[test]
    fn the_card_itself_takes_what_pytorch_takes_there() {
        for launch in held() {
            let (found, own) = (
                time_by(&h200(), &launch),
                own().kernels.time(&launch).expect("it is known"),
            );
            assert!(
                (found.seconds / own - 1.0).abs() < 0.02,
                "{launch:?}: {} {own}",
                found.seconds
            );
            assert_eq!(found.source, Source::Measured);
        }
    }

    #[test]
    fn a_card_of_half_the_speed_takes_twice_as_long_for_what_its_record_holds() {
        let mut slow = h200();
        for result in &mut slow.results {
            if let Outcome::Measured(measured) = &mut result.outcome
                && let Some(summary) = &mut measured.summary
            {
                summary.median_ns *= 2;
            }
        }
        for launch in held() {
            let ratio = time_by(&slow, &launch).seconds / time_by(&h200(), &launch).seconds;
            assert!((ratio - 2.0).abs() < 1e-6, "{launch:?}: {ratio}");
        }
        assert_eq!(time_by(&slow, &lacking()), time_by(&h200(), &lacking()));
    }

    #[test]
    fn a_kind_that_a_record_lacks_is_carried() {
        let found = time_by(&h200(), &lacking());
        assert_eq!(found.source, Source::Carried { same_generation: true });
        let own = own().kernels.time(&lacking()).expect("it is known");
        assert!((found.seconds / own - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_pytorch_alone_has_is_compared_with_pytorch_s() {
        let mut record = h200();
        let mut convolution = record.results.iter().find(|r| r.time().is_some()).expect("one").clone();
        convolution.kernel = vramscope_benchmark::Kernel {
            precision: Some(vramscope_benchmark::Precision::Fp32),
            shape: vramscope_benchmark::Shape {
                batch: Some(8),
                m: Some(256),
                n: Some(1024),
                k: Some(588),
                ..Default::default()
            },
            ..vramscope_benchmark::Kernel::of(BenchClass::Convolution)
        };
        let seconds = convolution.time().expect("it has one").get();
        record.results.push(convolution);
        let launch = sized(Class::Convolution, DType::F32, [8 * 256, 1024, 588, 0], 1);
        let found = time_by(&record, &launch);
        assert!(
            (found.seconds / seconds - 1.0).abs() < 1e-9,
            "{} {seconds}",
            found.seconds
        );
    }
}
