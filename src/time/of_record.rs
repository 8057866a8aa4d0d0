//! Takes kernel times from records of `vramscope bench`.

use vramscope_benchmark::{Class, Kernel, Layout, Pass, Precision, Record};
use vramscope_engine::attention::Algorithm;
use vramscope_engine::dtype::DType;

/// A point of a file of measured kernels: kind, dtype, extents, seconds.
pub(super) type Point = (&'static str, DType, Vec<u64>, f64);

/// Points of every kernel in a record that a training step launches.
pub(super) fn points(record: &Record) -> Vec<Point> {
    // Without elementwise kernels, device copies stand in for them: the time depends on the bytes.
    let has_elementwise = record.results.iter().any(|r| r.kernel.class == Class::Scale);
    let mut out = Vec::new();
    for result in &record.results {
        let Some(time) = result.time().filter(|time| time.get() > 0.0) else {
            continue;
        };
        if result.kernel.class == Class::DeviceCopy && has_elementwise {
            continue;
        }
        let named = named(&result.kernel).into_iter();
        out.extend(named.map(|(kind, dtype, extents)| (kind, dtype, extents, time.get())));
    }
    out
}

/// Kinds, dtypes and extents of a kernel in the format of a file of measured kernels.
pub(super) fn named(kernel: &Kernel) -> Vec<(&'static str, DType, Vec<u64>)> {
    if matches!(kernel.class, Class::HostToDevice | Class::DeviceToHost) {
        let elements = kernel.shape.bytes.unwrap_or(0) / DType::F32.width();
        return kind(kernel)
            .map(|kind| (kind, DType::F32, vec![elements]))
            .into_iter()
            .collect();
    }
    if kernel.class == Class::DeviceCopy {
        // A copy counts as elements of either width.
        let bytes = kernel.shape.bytes.unwrap_or(0);
        let of = |dtype: DType| ("scale", dtype, vec![bytes / dtype.width()]);
        return vec![of(DType::F32), of(DType::Bf16)];
    }
    match (dtype(kernel.precision), kind(kernel)) {
        (Some(dtype), Some(kind)) => vec![(kind, dtype, extents(kernel))],
        _ => Vec::new(),
    }
}

/// Name of a kernel in a file of measured kernels; `None` if a step does not launch it.
fn kind(kernel: &Kernel) -> Option<&'static str> {
    let by_pass = |forward, backward| match kernel.pass {
        Some(Pass::Backward) => backward,
        _ => forward,
    };
    Some(match kernel.class {
        Class::Gemm if kernel.shape.batch.is_some() => batched(kernel.layout),
        Class::Gemm => product(kernel.layout),
        Class::Softmax => by_pass("softmax", "softmax_bw"),
        Class::LogSoftmax => by_pass("log_softmax", "log_softmax_bw"),
        Class::Nll => by_pass("nll", "nll_bw"),
        Class::LayerNorm if kernel.frozen == Some(true) => "layer_norm_bwx",
        Class::LayerNorm => by_pass("layer_norm", "layer_norm_bw"),
        Class::SumRows => "mean_last",
        Class::SumColumns => "sum_first",
        Class::Embedding => by_pass("embedding", "embedding_bw"),
        Class::RotateHalf => "half_cat",
        Class::TransposeCopy => "transpose_copy",
        Class::Scale => "scale",
        Class::Add => "add",
        Class::Fill => "fill",
        Class::Cast => "cast",
        Class::Dropout => "dropout",
        Class::Gelu => by_pass("gelu", "gelu_bw"),
        Class::GeluTanh => by_pass("gelu_tanh", "gelu_tanh_bw"),
        Class::Silu => by_pass("silu", "silu_bw"),
        Class::Tanh => by_pass("tanh", "tanh_bw"),
        Class::Sigmoid => "sigmoid",
        Class::Adamw => "fused_adamw",
        Class::ForeachScale => "foreach_mul_",
        Class::ForeachLerp => "foreach_lerp_",
        Class::ForeachAddcdiv => "foreach_addcdiv_",
        Class::ForeachNorm => "foreach_norm",
        Class::Convolution => by_pass("conv", "conv_bw"),
        Class::MaskedScatter => "masked_scatter",
        Class::Attention => return fused(kernel),
        Class::HostToDevice if kernel.pinned == Some(true) => "to_device",
        Class::DeviceToHost if kernel.pinned == Some(true) => "to_host",
        // Other copies by the host and those between cards are not kernels of a step. PyTorch launches fused losses, RMSNorm and
        // gated activations as their parts.
        _ => return None,
    })
}

/// Extents of a kernel, as a file of measured kernels lists them for its kind.
fn extents(kernel: &Kernel) -> Vec<u64> {
    let shape = &kernel.shape;
    let n = |extent: Option<u64>| extent.unwrap_or(0);
    match kernel.class {
        Class::Gemm => {
            let product = [n(shape.m), n(shape.n), n(shape.k)];
            shape.batch.into_iter().chain(product).collect()
        }
        Class::Softmax | Class::LogSoftmax | Class::Nll | Class::LayerNorm | Class::SumRows | Class::SumColumns => {
            vec![n(shape.rows), n(shape.columns)]
        }
        Class::Embedding => vec![n(shape.rows), n(shape.columns), n(shape.entries)],
        Class::MaskedScatter => vec![n(shape.rows), n(shape.columns)],
        // Images, pixels a side, pixels a side of a patch, channels.
        Class::Convolution => {
            let patch = (n(shape.k) / 3).isqrt();
            vec![n(shape.batch), n(shape.m).isqrt() * patch, patch, n(shape.n)]
        }
        Class::RotateHalf => vec![n(shape.rows) * n(shape.columns), n(shape.columns)],
        Class::TransposeCopy => {
            let elements = shape.batch.unwrap_or(1) * n(shape.length) * n(shape.heads) * n(shape.head_dim);
            vec![elements, n(shape.head_dim)]
        }
        Class::Adamw | Class::ForeachScale | Class::ForeachLerp | Class::ForeachAddcdiv | Class::ForeachNorm => {
            vec![shape.tensors.unwrap_or(1), n(shape.elements)]
        }
        Class::Attention => {
            let (batch, heads) = (n(shape.batch).max(1), n(shape.heads).max(1));
            let kv_heads = shape.kv_heads.unwrap_or(heads);
            let causal = u64::from(kernel.causal == Some(true));
            vec![batch, heads, kv_heads, n(shape.length), n(shape.head_dim), causal, 0]
        }
        _ => vec![n(shape.elements)],
    }
}

fn dtype(precision: Option<Precision>) -> Option<DType> {
    match precision? {
        Precision::Bf16 => Some(DType::Bf16),
        Precision::Fp16 => Some(DType::F16),
        Precision::Fp32 => Some(DType::F32),
        // Simulated steps run with TF32 off, PyTorch's default.
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

const fn batched(layout: Option<Layout>) -> &'static str {
    match layout {
        Some(Layout::Nn) => "bmm.nn",
        Some(Layout::Tn) => "bmm.nt",
        Some(Layout::Nt) | None => "bmm.tn",
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
