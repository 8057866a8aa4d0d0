//! Measured kernel times of a card, by kind and size.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::compared::Compared;
use super::interpolate::{Curve, Field};
use super::kinds::{Location, curve_of, location_of};
use super::rates::Rates;
use super::spread::Source;
use vramscope_engine::dtype::DType;
use vramscope_engine::tape::work::{Class, Fused, Launch, Layout};

/// Times of kernels on one card, measured individually.
#[derive(Debug, Clone, Default)]
pub struct Kernels {
    /// Kinds with one extent: bytes or elements.
    curves: BTreeMap<(String, Width), Curve>,
    /// Kinds with several extents, as ratios to the ideal time.
    fields: BTreeMap<(Class, Width, Alignment), Field>,
    /// Kernels of another card, against which these were compared.
    compared: Option<Arc<Compared>>,
}

/// A kernel's time and what it was known from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct KernelTime {
    /// Seconds of the kernel.
    pub seconds: f64,
    /// Source of the time.
    pub source: Source,
}

/// Bytes per element; dtypes of equal width share a rate: 2 for half precision, 4 for fp32.
type Width = u64;

/// Number of elements, at most 8, to which all rows of a product's matrices are aligned.
type Alignment = u64;

/// Rates that define the ideal time. Any would do; those of a large card keep ratios near 1.
const IDEAL: Rates = Rates::REFERENCE;

impl Kernels {
    /// Adds a point: kind of kernel, dtype, extents, and time in seconds.
    pub fn add(&mut self, kind: &str, dtype: DType, extents: &[u64], seconds: f64) {
        let width = dtype.width();
        match location_of(kind, dtype, extents) {
            Location::Field { class, extents, shared } => {
                let launch = sized(class, dtype, extents, shared);
                let factor = seconds / IDEAL.ideal(&launch);
                let field = self.fields.entry((class, width, aligned(&launch))).or_default();
                field.push(extents, factor);
            }
            Location::Curve(name, x) => {
                let curve = self.curves.entry((name.to_owned(), width)).or_default();
                curve.push(x as f64, seconds);
            }
        }
    }

    /// Seconds of a kernel that a file of measured kernels would name so.
    #[cfg(test)]
    pub(super) fn named(&self, kind: &str, dtype: DType, extents: &[u64]) -> Option<f64> {
        match location_of(kind, dtype, extents) {
            Location::Field { class, extents, shared } => self.time(&sized(class, dtype, extents, shared)),
            Location::Curve(name, x) => self.curves.get(&(name, dtype.width()))?.at(x as f64),
        }
    }

    /// These kernels, known from those of another card wherever that one's were measured.
    #[must_use]
    pub(super) fn compared(self, with: Compared) -> Self {
        Self {
            compared: Some(Arc::new(with)),
            ..self
        }
    }

    /// Seconds at a point of the curve with this name, if measured.
    pub(super) fn on_curve(&self, name: &str, width: u64, x: u64) -> Option<f64> {
        self.curves.get(&(name.to_owned(), width))?.at(x as f64)
    }

    /// Seconds of a copy between the host's pinned memory and the card, if measured.
    pub fn transfer(&self, to_host: bool, bytes: u64) -> Option<f64> {
        let name = if to_host { "to_host" } else { "to_device" };
        let here = || self.curves.get(&(name.to_owned(), 4))?.at(bytes as f64);
        here().or_else(|| self.compared.as_ref()?.transfer(to_host, bytes))
    }

    /// Seconds of a kernel, if its kind was measured.
    pub fn time(&self, launch: &Launch) -> Option<f64> {
        self.kernel_time(launch).map(|known| known.seconds)
    }

    /// Seconds of a kernel and their source, if its kind was measured on this card or the one that it was compared with.
    pub(super) fn kernel_time(&self, launch: &Launch) -> Option<KernelTime> {
        let of_other = self.compared.as_ref().and_then(|compared| compared.kernel_time(launch));
        of_other.or_else(|| {
            Some(KernelTime {
                seconds: self.here(launch)?,
                source: Source::Measured,
            })
        })
    }

    /// Seconds of a kernel from points of this card alone.
    fn here(&self, launch: &Launch) -> Option<f64> {
        let width = if launch.dtype.width() == 2 { 2 } else { 4 };
        if let Some((name, x)) = curve_of(launch) {
            let curve = |name: &str| self.curves.get(&(name.to_owned(), width));
            return match curve(name) {
                Some(curve) => curve.at(x as f64),
                // Elementwise kernels that were not measured take the time of their bytes.
                None => curve("vectorised")?.at(launch.bytes() as f64),
            };
        }
        let class = launch.class;
        let find = |class: Class, alignment: Alignment| self.fields.get(&(class, width, alignment));
        let alignment = aligned(launch);
        let field = [alignment, 4, 2, 1, 8]
            .into_iter()
            .find_map(|alignment| find(class, alignment))
            .or_else(|| substitutes(class).into_iter().find_map(|class| find(class, alignment)))?;
        Some(field.at(launch.extents)? * IDEAL.ideal(launch))
    }
}

/// A launch of which only class, dtype and extents are known.
pub(super) fn sized(class: Class, dtype: DType, extents: [u64; 4], shared: u64) -> Launch {
    let [a, b, c, d] = extents;
    let elements = match class {
        Class::Matmul(_) => [d * (a * c + c * b), d * a * b],
        Class::ReduceRows => [a * b, a],
        Class::ReduceColumns => [a * b, b],
        Class::LayerNormBackward | Class::LayerNormInputBackward => [2 * a * b, a * b],
        Class::SoftmaxBackward | Class::LogSoftmaxBackward => [2 * a * b, a * b],
        Class::Convolution | Class::ConvolutionBackward => [a * c + b * c, a * b],
        Class::Attention(_) => [3 * a * b * d, a * b * d],
        Class::TopK => [a * b, a * c],
        Class::Scatter | Class::GatherLast => [a * c, a * c],
        _ => [a * b, a * b],
    };
    Launch {
        name: "",
        class,
        dtype,
        gradient: false,
        scope: 0,
        read: elements[0] * dtype.width(),
        written: elements[1] * dtype.width(),
        extents,
        shared,
    }
}

/// Alignment of the rows of all three matrices; tensor cores want 16 bytes.
fn aligned(launch: &Launch) -> Alignment {
    let [m, n, k, _] = launch.extents;
    let rows = match launch.class {
        Class::Matmul(Layout::Tn) => [k, k, n],
        Class::Matmul(Layout::Nn) => [k, n, n],
        Class::Matmul(Layout::Nt) => [m, n, n],
        _ => return 8,
    };
    let most = 16 / launch.dtype.width().max(2);
    let divides = |step: &u64| rows.iter().all(|row| row.is_multiple_of(*step));
    [8, 4, 2]
        .into_iter()
        .filter(|step| *step <= most)
        .find(divides)
        .map_or(1, |step| if step == most { 8 } else { step })
}

/// Classes that replace an attention that was not measured in its exact form; its operations are still counted exactly.
pub(super) fn substitutes(class: Class) -> Vec<Class> {
    match class {
        Class::Attention(fused) => [false, true]
            .map(|causal| {
                Class::Attention(Fused {
                    causal,
                    masked: false,
                    ..fused
                })
            })
            .into(),
        _ => Vec::new(),
    }
}
