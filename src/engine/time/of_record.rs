//! Kernels that `vramscope bench` measured.

use super::kernels::Kernels;
use crate::attention::Algorithm;
use crate::dtype::DType;
use crate::record::{Class, Kernel, Layout, Pass, Precision, Record};

impl Kernels {
    /// The kernels of a benchmark's record that a training step launches. What it lacks is taken from the
    /// data sheet.
    pub fn of_record(record: &Record) -> Self {
        let mut out = Self::default();
        for result in &record.results {
            let Some(time) = result.time() else { continue };
            for (kind, dtype, extents) in points(&result.kernel) {
                out.add(kind, dtype, &extents, time.get());
            }
        }
        out
    }
}

/// The same kernel under the names of a file of measured kernels.
fn points(kernel: &Kernel) -> Vec<(&'static str, DType, Vec<u64>)> {
    let shape = &kernel.shape;
    let n = |extent: Option<u64>| extent.unwrap_or(0);
    if kernel.class == Class::DeviceCopy {
        // a copy of elements of either width
        let of = |dtype: DType| ("scale", dtype, vec![n(shape.bytes) / dtype.width()]);
        return vec![of(DType::F32), of(DType::Bf16)];
    }
    let Some(dtype) = dtype(kernel.precision) else {
        return Vec::new();
    };
    let rows = || vec![n(shape.rows), n(shape.columns)];
    let (kind, extents) = match kernel.class {
        Class::Gemm => (product(kernel.layout), vec![n(shape.m), n(shape.n), n(shape.k)]),
        Class::Softmax => ("softmax", rows()),
        Class::LayerNorm => ("layer_norm", rows()),
        Class::Gelu => ("gelu", vec![n(shape.elements)]),
        Class::Adamw => ("fused_adamw", vec![1, n(shape.elements)]),
        Class::Attention => match fused(kernel) {
            Some(kind) => {
                let heads = n(shape.heads).max(1);
                let kv_heads = shape.kv_heads.unwrap_or(heads);
                let causal = u64::from(kernel.causal == Some(true));
                let batch = n(shape.batch).max(1);
                (
                    kind,
                    vec![batch, heads, kv_heads, n(shape.length), n(shape.head_dim), causal, 0],
                )
            }
            None => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    vec![(kind, dtype, extents)]
}

fn dtype(precision: Option<Precision>) -> Option<DType> {
    match precision? {
        Precision::Bf16 => Some(DType::Bf16),
        Precision::Fp16 => Some(DType::F16),
        Precision::Fp32 => Some(DType::F32),
        // the steps here run with TF32 off, as PyTorch does unless told
        Precision::Tf32 => None,
    }
}

const fn product(layout: Option<Layout>) -> &'static str {
    match layout {
        Some(Layout::Nn) => "gemm.nn",
        Some(Layout::Tn) => "gemm.nt",
        Some(Layout::Nt) | None => "gemm.tn",
    }
}

fn fused(kernel: &Kernel) -> Option<&'static str> {
    Some(match (kernel.algorithm?, kernel.pass.unwrap_or(Pass::Forward)) {
        (Algorithm::Cudnn, Pass::Forward) => "cudnn",
        (Algorithm::Cudnn, Pass::Backward) => "cudnn_bw",
        (Algorithm::Flash, Pass::Forward) => "flash",
        (Algorithm::Flash, Pass::Backward) => "flash_bw",
        (Algorithm::Efficient, Pass::Forward) => "efficient",
        (Algorithm::Efficient, Pass::Backward) => "efficient_bw",
        _ => return None,
    })
}
