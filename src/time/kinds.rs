//! Maps names of measured kernels to the tape's kernels.

use vramscope_engine::dtype::DType;
use vramscope_engine::tape::SdpaBackend;
use vramscope_engine::tape::work::{Class, Fused, Launch, Layout};

/// Location of a measured point.
pub(super) enum Location {
    /// Among points of several extents, as ratios to an ideal time; the last number is query heads per key head.
    Field(Class, [u64; 4], u64),
    /// On the curve with this name, at a number of bytes or elements.
    Curve(String, u64),
}

/// Location of a point, from its kind and the extents that the recorder wrote.
pub(super) fn place_of(kind: &str, dtype: DType, extents: &[u64]) -> Location {
    let d = |i: usize| extents.get(i).copied().unwrap_or(0);
    if let Some((class, extents, shared)) = field_of(kind, &d) {
        return Location::Field(class, extents, shared);
    }
    let width = dtype.width();
    let (name, x) = match kind {
        // The time depends on the bytes only, whatever the operation.
        "scale" => ("vectorised", 2 * d(0) * width),
        "add" => ("vectorised", 3 * d(0) * width),
        "fill" | "to_host" | "to_device" => (kind, d(0) * width),
        "cast" => ("widen", d(0)),
        "transpose_copy" | "rope_mul" => ("strided", d(0)),
        "half_cat" => ("cat", d(0)),
        "foreach_mul_" => ("foreach", 2 * d(0) * d(1) * width),
        "foreach_lerp_" => ("foreach", 3 * d(0) * d(1) * width),
        "foreach_addcdiv_" => ("foreach", 4 * d(0) * d(1) * width),
        "fused_adamw" | "foreach_norm" | "masked_scatter" | "embedding_bw" => (kind, d(0) * d(1)),
        "embedding" => ("gather", d(0) * d(1)),
        other => (other, d(0)),
    };
    Location::Curve(name.to_owned(), x)
}

/// Kinds with several extents.
fn field_of(name: &str, d: &dyn Fn(usize) -> u64) -> Option<(Class, [u64; 4], u64)> {
    let rows = [d(0), d(1), 0, 0];
    let layout = |suffix: &str| match suffix {
        "tn" => Layout::Tn,
        "nn" => Layout::Nn,
        _ => Layout::Nt,
    };
    if let Some(suffix) = name.strip_prefix("gemm.") {
        return Some((Class::Matmul(layout(suffix)), [d(0), d(1), d(2), 1], 1));
    }
    if let Some(suffix) = name.strip_prefix("bmm.") {
        return Some((Class::Matmul(layout(suffix)), [d(1), d(2), d(3), d(0)], 1));
    }
    let (stem, backward) = match name.strip_suffix("_bw") {
        Some(stem) => (stem, true),
        None => (name, false),
    };
    let backend = match stem {
        "cudnn" => Some(SdpaBackend::Cudnn),
        "flash" => Some(SdpaBackend::Flash),
        "efficient" => Some(SdpaBackend::Efficient),
        _ => None,
    };
    if let Some(backend) = backend {
        let fused = Fused {
            backend,
            backward,
            causal: d(5) == 1,
            masked: d(6) == 1,
        };
        let (batch, heads, kv, length, width) = (d(0), d(1), d(2), d(3), d(4));
        return Some((
            Class::Attention(fused),
            [batch * heads, length, length, width],
            heads / kv.max(1),
        ));
    }
    let patches = |(n, side, patch, width): (u64, u64, u64, u64)| {
        let positions = n * (side / patch.max(1)) * (side / patch.max(1));
        [positions, width, 3 * patch * patch, 0]
    };
    Some(match name {
        "mean_last" => (Class::ReduceRows, rows, 1),
        "sum_first" => (Class::ReduceColumns, rows, 1),
        "layer_norm" => (Class::LayerNorm, rows, 1),
        "layer_norm_bw" => (Class::LayerNormBackward, rows, 1),
        "layer_norm_bwx" => (Class::LayerNormInputBackward, rows, 1),
        "softmax" => (Class::Softmax, rows, 1),
        "softmax_bw" => (Class::SoftmaxBackward, rows, 1),
        "log_softmax" => (Class::LogSoftmax, rows, 1),
        "log_softmax_bw" => (Class::LogSoftmaxBackward, rows, 1),
        "topk" => (Class::TopK, [d(0), d(1), d(2), 0], 1),
        "scatter" => (Class::Scatter, [d(0), d(1), d(2), 0], 1),
        "gather_last" => (Class::GatherLast, [d(0), d(1), d(2), 0], 1),
        "nll_bw" => (Class::NllBackward, rows, 1),
        "conv" => (Class::Convolution, patches((d(0), d(1), d(2), d(3))), 1),
        "conv_bw" => (Class::ConvolutionBackward, patches((d(0), d(1), d(2), d(3))), 1),
        _ => return None,
    })
}

/// Kinds with one extent: the name of the curve and the position on it.
pub(super) fn curve_of(launch: &Launch) -> Option<(&'static str, u64)> {
    let elements = launch.written / launch.dtype.width().max(1);
    Some(match launch.class {
        Class::Pointwise => pointwise(launch),
        Class::Strided => ("strided", elements),
        Class::Cat => ("cat", elements),
        Class::Gather => ("gather", elements),
        Class::MaskedScatter => ("masked_scatter", elements),
        Class::EmbeddingBackward => ("embedding_bw", launch.extents[0] * launch.extents[1]),
        Class::Nll => ("nll", launch.extents[0]),
        Class::Foreach => ("foreach", launch.bytes()),
        Class::ForeachNorm => ("foreach_norm", launch.extents[1]),
        Class::FusedAdamw => ("fused_adamw", launch.extents[1]),
        _ => return None,
    })
}

/// Compute-bound operations have their own curves; the others take the time of their bytes.
fn pointwise(launch: &Launch) -> (&'static str, u64) {
    let width = launch.dtype.width().max(1);
    let elements = launch.read.min(launch.written) / width;
    let of = |forward: &'static str, backward: &'static str| {
        if launch.gradient {
            (backward, elements)
        } else {
            (forward, elements)
        }
    };
    match launch.name {
        "gelu" => of("gelu", "gelu_bw"),
        "gelu_tanh" => of("gelu_tanh", "gelu_tanh_bw"),
        "silu" => of("silu", "silu_bw"),
        "tanh" => of("tanh", "tanh_bw"),
        "sigmoid" => of("sigmoid", "sigmoid"),
        "dropout" => ("dropout", launch.read / width),
        "to dtype" if width == 2 && launch.written == 2 * launch.read => ("widen", elements),
        "zeros" | "ones_like" => ("fill", launch.written),
        name if name.contains("storage") || name.contains("workspace") => ("fill", 0),
        _ => ("vectorised", launch.bytes()),
    }
}

/// Bytes that a kernel on the curve with this name moves at a point of it, to compare cards by.
pub(super) fn curve_bytes(name: &str, x: u64, width: u64) -> u64 {
    match name {
        "vectorised" | "foreach" | "fill" | "to_host" | "to_device" => x,
        // Halves are read, fp32 is written.
        "widen" => 6 * x,
        "dropout" => (2 * width + 1) * x,
        // Parameter and both states are read and written, the gradient is read.
        "fused_adamw" => 7 * width * x,
        "foreach_norm" => width * x,
        // One number of each row.
        "nll" => width * x,
        name if name.ends_with("_bw") => 3 * width * x,
        _ => 2 * width * x,
    }
}
