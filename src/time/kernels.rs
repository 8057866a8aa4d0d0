//! Measured kernels: what a card took for each kind and size.

use std::collections::BTreeMap;

use super::interpolate::{Curve, Field};
use super::kinds::{Place, curve_of, place_of};
use super::rates::Rates;
use vramscope_engine::dtype::DType;
use vramscope_engine::tape::work::{Class, Fused, Launch, Layout};

/// Times of kernels on one card, measured one by one.
#[derive(Debug, Clone, Default)]
pub struct Kernels {
    /// Of one extent: bytes or elements.
    curves: BTreeMap<(String, Width), Curve>,
    /// Of several extents, as factors over the ideal time.
    fields: BTreeMap<(Class, Width, Alignment), Field>,
}

/// What types share a rate: those of 2 bytes, and fp32.
type Width = u64;

/// Elements, of 8 at most, to which all rows of a product's matrices are aligned.
type Alignment = u64;

/// Rates over which factors are taken; any would do, those of a large card keep factors near 1.
const IDEAL: Rates = Rates::REFERENCE;

impl Kernels {
    /// Adds a point: the kind of kernel, what it computes with, its extents, and its seconds.
    pub fn add(&mut self, kind: &str, dtype: DType, extents: &[u64], seconds: f64) {
        let width = dtype.width();
        match place_of(kind, dtype, extents) {
            Place::Field(class, extents, shared) => {
                let launch = sized(class, dtype, extents, shared);
                let factor = seconds / IDEAL.ideal(&launch);
                let field = self.fields.entry((class, width, aligned(&launch))).or_default();
                field.push(extents, factor);
            }
            Place::Curve(name, x) => {
                let curve = self.curves.entry((name.to_owned(), width)).or_default();
                curve.push(x as f64, seconds);
            }
        }
    }

    /// Seconds of a copy between the host's pinned memory and the card, where that was measured.
    pub fn transfer(&self, to_host: bool, bytes: u64) -> Option<f64> {
        let name = if to_host { "to_host" } else { "to_device" };
        self.curves.get(&(name.to_owned(), 4))?.at(bytes as f64)
    }

    /// Seconds of a kernel, where its kind was measured.
    pub fn time(&self, launch: &Launch) -> Option<f64> {
        let width = if launch.dtype.width() == 2 { 2 } else { 4 };
        if let Some((name, x)) = curve_of(launch) {
            let curve = |name: &str| self.curves.get(&(name.to_owned(), width));
            return match curve(name) {
                Some(curve) => curve.at(x as f64),
                // what was not measured by itself takes what its bytes take
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

/// A kernel of which only class, type and extents are known.
fn sized(class: Class, dtype: DType, extents: [u64; 4], shared: u64) -> Launch {
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

/// How far the rows of all three matrices are aligned: 16 bytes is what tensor cores want.
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

/// What stands in for an attention that was not measured in that form: its operations are counted all the
/// same.
fn substitutes(class: Class) -> Vec<Class> {
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
