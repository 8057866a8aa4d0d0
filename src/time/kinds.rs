//! Maps names of measured kernels to the tape's kernels.

use vramscope_engine::dtype::DType;
use vramscope_engine::tape::SdpaBackend;
use vramscope_engine::tape::work::{Class, Fused, Launch, Layout};

/// Location of a measured point.
pub(super) enum Location {
    /// Among points of several extents, whose times are kept as ratios to an ideal time.
    Field {
        class: Class,
        /// Extents in the order that the class gives.
        extents: [u64; 4],
        /// Query heads per key head; 1 for all but attention.
        shared: u64,
    },
    /// On the curve with this name, at a number of bytes or elements.
    Curve(String, u64),
}

/// Location of a point, from its kind and extents in a file of measured kernels.
pub(super) fn location_of(kind: &str, dtype: DType, extents: &[u64]) -> Location {
    let d = |i: usize| extents.get(i).copied().unwrap_or(0);
    if let Some(field) = field_of(kind, &d) {
        return field;
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

/// Location of a point of a kind with several extents, which `d` gives by their place; `None` for kinds with a curve.
fn field_of(name: &str, d: &dyn Fn(usize) -> u64) -> Option<Location> {
    let field = |class, extents| Location::Field {
        class,
        extents,
        shared: 1,
    };
    let rows = [d(0), d(1), 0, 0];
    let layout = |suffix: &str| match suffix {
        "tn" => Layout::Tn,
        "nn" => Layout::Nn,
        _ => Layout::Nt,
    };
    if let Some(suffix) = name.strip_prefix("gemm.") {
        return Some(field(Class::Matmul(layout(suffix)), [d(0), d(1), d(2), 1]));
    }
    if let Some(suffix) = name.strip_prefix("bmm.") {
        return Some(field(Class::Matmul(layout(suffix)), [d(1), d(2), d(3), d(0)]));
    }
    if let Some(attention) = attention_of(name, d) {
        return Some(attention);
    }
    let patches = |(n, side, patch, width): (u64, u64, u64, u64)| {
        let positions = n * (side / patch.max(1)) * (side / patch.max(1));
        [positions, width, 3 * patch * patch, 0]
    };
    Some(match name {
        "mean_last" => field(Class::ReduceRows, rows),
        "sum_first" => field(Class::ReduceColumns, rows),
        "layer_norm" => field(Class::LayerNorm, rows),
        "layer_norm_bw" => field(Class::LayerNormBackward, rows),
        "layer_norm_bwx" => field(Class::LayerNormInputBackward, rows),
        "softmax" => field(Class::Softmax, rows),
        "softmax_bw" => field(Class::SoftmaxBackward, rows),
        "log_softmax" => field(Class::LogSoftmax, rows),
        "log_softmax_bw" => field(Class::LogSoftmaxBackward, rows),
        "topk" => field(Class::TopK, [d(0), d(1), d(2), 0]),
        "scatter" => field(Class::Scatter, [d(0), d(1), d(2), 0]),
        "gather_last" => field(Class::GatherLast, [d(0), d(1), d(2), 0]),
        "nll_bw" => field(Class::NllBackward, rows),
        "conv" => field(Class::Convolution, patches((d(0), d(1), d(2), d(3)))),
        "conv_bw" => field(Class::ConvolutionBackward, patches((d(0), d(1), d(2), d(3)))),
        _ => return None,
    })
}

/// Location of a point of fused attention; `None` for other kinds.
fn attention_of(name: &str, d: &dyn Fn(usize) -> u64) -> Option<Location> {
    let (stem, backward) = match name.strip_suffix("_bw") {
        Some(stem) => (stem, true),
        None => (name, false),
    };
    let backend = match stem {
        "cudnn" => SdpaBackend::Cudnn,
        "flash" => SdpaBackend::Flash,
        "efficient" => SdpaBackend::Efficient,
        _ => return None,
    };
    let fused = Fused {
        backend,
        backward,
        causal: d(5) == 1,
        masked: d(6) == 1,
    };
    let (batch, heads, kv_heads, length, width) = (d(0), d(1), d(2), d(3), d(4));
    Some(Location::Field {
        class: Class::Attention(fused),
        extents: [batch * heads, length, length, width],
        shared: heads / kv_heads.max(1),
    })
}

/// Curve of a launch, and the position on it; `None` for kinds with several extents.
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

/// Curve of an elementwise launch: compute-bound operations have their own, the others take the time of their bytes.
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
        // Each allocation stands for a launch that writes it, but what a kernel takes inside is its own to write.
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
