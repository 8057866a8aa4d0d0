//! Kernels that operations launch, with the extents that determine their time.

use super::super::kernels::Call;
use super::super::lines::Op;
use super::super::tables::Tables;
use super::super::value::{TensorRef, Value};
use crate::dtype::DType;
use crate::tape::work::{Class, Fused, Layout};
use crate::tape::{SdpaBackend, Tensor};

/// Kernel: class, compute type, extents, and query heads for each key head.
type Kernel = (Class, DType, [u64; 4], u64);

/// Returns the kernel of an operation.
pub(super) fn of(name: &str, call: &Call<'_>, line: &Op<'_>, tables: &Tables) -> Kernel {
    let found = match name {
        "mm" | "bmm" | "mv" | "dot" => product(call, 0),
        "addmm" | "baddbmm" | "_addmm_activation" | "addbmm" | "addmv" => product(call, 1),
        "_grouped_mm" => grouped(call),
        _ if name.starts_with("_scaled_dot_product") => attention(name, call),
        "convolution" | "cudnn_convolution" => convolution(call, call.tensor(1, "weight"), false),
        "convolution_backward" => convolution(call, call.tensor(2, "weight"), true),
        "_foreach_norm" => listed(Class::ForeachNorm, call, tables),
        _ if name.starts_with("_fused_adam") => listed(Class::FusedAdamw, call, tables),
        _ if name.starts_with("_foreach") || name.starts_with("_amp_foreach") => listed(Class::Foreach, call, tables),
        _ => rows(name, call).or_else(|| copied(name, line, call)),
    };
    found.unwrap_or_else(|| pointwise(call, line, tables))
}

/// Product of two operands, the first at argument `first`: [m, n, k, batch].
fn product(call: &Call<'_>, first: usize) -> Option<Kernel> {
    let (a, b) = (call.tensor(first, "mat1")?, call.tensor(first + 1, "mat2")?);
    let (rows, columns) = (a.dim().checked_sub(2)?, b.dim().checked_sub(2)?);
    let lies = |x: &Tensor| x.dim() >= 2 && x.last() > 1 && x.strides()[x.dim() - 1] != 1;
    let layout = match (lies(&a), lies(&b)) {
        (true, _) => Layout::Nt,
        (false, true) => Layout::Tn,
        (false, false) => Layout::Nn,
    };
    let batch = if a.dim() == 3 { a.size(0) } else { 1 };
    let extents = [a.size(rows), b.size(columns + 1), a.last(), batch];
    Some((Class::Matmul(layout), a.dtype(), extents, 1))
}

/// Products of all experts, which take as many operations as one product of all rows.
fn grouped(call: &Call<'_>) -> Option<Kernel> {
    let operand = |at, name| call.tensor(at, name).filter(|x| x.dim() > 1);
    let (a, b) = (operand(0, "self")?, operand(1, "mat2")?);
    let rows = a.numel() / a.last();
    let extents = [rows, b.last(), a.last(), 1];
    Some((Class::Matmul(Layout::Nn), a.dtype(), extents, 1))
}

/// Fused attention: [batch × heads, queries, keys, width].
fn attention(name: &str, call: &Call<'_>) -> Option<Kernel> {
    let backward = name.ends_with("backward");
    let first = usize::from(backward);
    let (backend, causal) = match (name.contains("flash"), name.contains("cudnn"), backward) {
        (true, _, false) => (SdpaBackend::Flash, 4),
        (true, _, true) => (SdpaBackend::Flash, 11),
        (_, true, false) => (SdpaBackend::Cudnn, 6),
        (_, true, true) => (SdpaBackend::Cudnn, 14),
        (_, _, false) => (SdpaBackend::Efficient, 6),
        (_, _, true) => (SdpaBackend::Efficient, 11),
    };
    let (q, k) = (call.tensor_of(first, "query", 4)?, call.tensor_of(first + 1, "key", 4)?);
    let mask = match (backend, backward) {
        (SdpaBackend::Flash, _) => None,
        (SdpaBackend::Cudnn, true) => call.tensor(8, "attn_bias"),
        (_, true) => call.tensor(4, "attn_bias"),
        (_, false) => call.tensor(3, "attn_bias"),
    };
    let fused = Fused {
        backend,
        backward,
        causal: call.is(causal, "is_causal"),
        masked: mask.is_some(),
    };
    let extents = [q.size(0) * q.size(1), q.size(2), k.size(2), q.size(3)];
    Some((
        Class::Attention(fused),
        q.dtype(),
        extents,
        (q.size(1) / k.size(1)).max(1),
    ))
}

/// Convolution: output positions, output channels, inputs of a patch.
fn convolution(call: &Call<'_>, weight: Option<Tensor>, backward: bool) -> Option<Kernel> {
    let weight = weight?;
    let (out, channels) = match backward {
        true => call
            .tensor(0, "grad_output")
            .map(|grad| (grad.numel(), grad.shape().get(1).copied().unwrap_or(1)))?,
        false => call
            .output(0)
            .map(|out| (out.numel(), out.shape.get(1).copied().unwrap_or(1)))?,
    };
    let class = if backward {
        Class::ConvolutionBackward
    } else {
        Class::Convolution
    };
    let extents = [
        out / channels.max(1),
        channels,
        weight.numel() / weight.shape().first().copied().unwrap_or(1).max(1),
        0,
    ];
    Some((class, weight.dtype(), extents, 1))
}

/// Operation on a list of tensors: number of tensors, total elements.
fn listed(class: Class, call: &Call<'_>, tables: &Tables) -> Option<Kernel> {
    let (mut count, mut elements, mut dtype) = (0, 0, None);
    call.value(0, "self").tensors(&mut |tensor: &TensorRef| {
        if let Some(layout) = tables.layouts.get(tensor.meta as usize) {
            (count, elements, dtype) = (count + 1, elements + layout.numel(), dtype.or(Some(layout.dtype)));
        }
    });
    Some((class, dtype?, [count, elements, 0, 0], 1))
}

/// Kernels that work row by row.
fn rows(name: &str, call: &Call<'_>) -> Option<Kernel> {
    let of = |x: &Tensor| {
        let columns = if x.dim() == 0 { 1 } else { x.last() };
        [x.numel() / columns.max(1), columns, 0, 0]
    };
    let with = |class: Class, at: usize| {
        let x = call.tensor(at, "self")?;
        Some((class, x.dtype(), of(&x), 1))
    };
    match name {
        "native_layer_norm" | "_fused_rms_norm" => with(Class::LayerNorm, 0),
        "native_layer_norm_backward" | "_fused_rms_norm_backward" if call.gives(1) => with(Class::LayerNormBackward, 1),
        "native_layer_norm_backward" | "_fused_rms_norm_backward" => with(Class::LayerNormInputBackward, 1),
        "_softmax" | "_safe_softmax" => with(Class::Softmax, 0),
        "_softmax_backward_data" => with(Class::SoftmaxBackward, 0),
        "_log_softmax" => with(Class::LogSoftmax, 0),
        "_log_softmax_backward_data" => with(Class::LogSoftmaxBackward, 0),
        "nll_loss_forward" => with(Class::Nll, 0),
        "nll_loss_backward" => with(Class::NllBackward, 1),
        "embedding" => with(Class::Gather, 0).map(|found| gathered(found, call)),
        "index" | "index_select" => with(Class::Gather, 0).map(|found| gathered(found, call)),
        "embedding_dense_backward" => {
            let (grad, entries) = (call.tensor(0, "grad_output")?, call.int(2, "num_weights")?);
            let [rows, columns, ..] = of(&grad);
            let extents = [rows, columns, u64::try_from(entries).ok()?, 0];
            Some((Class::EmbeddingBackward, grad.dtype(), extents, 1))
        }
        "masked_scatter" | "masked_scatter_" => with(Class::MaskedScatter, 0),
        "topk" => {
            let (class, dtype, [rows, columns, ..], shared) = with(Class::TopK, 0)?;
            let k = u64::try_from(call.int(1, "k")?).ok()?;
            Some((class, dtype, [rows, columns, k, 0], shared))
        }
        "cat" | "stack" => call.output(0).map(|out| (Class::Cat, out.dtype, [0; 4], 1)),
        "sum" | "mean" | "amax" | "amin" | "prod" | "norm" | "linalg_vector_norm" | "var_mean" | "var" | "any"
        | "all" => reduced(call),
        _ => None,
    }
}

/// Replaces the extents of a row kernel by those of its result.
fn gathered((class, dtype, _, shared): Kernel, call: &Call<'_>) -> Kernel {
    let out = call.output(0).map_or([0; 4], |out| {
        let columns = out.shape.last().copied().unwrap_or(1);
        [out.numel() / columns.max(1), columns, 0, 0]
    });
    (class, dtype, out, shared)
}

/// Reduction: over the last dimension if the result lacks it or has extent 1 there, else over others.
fn reduced(call: &Call<'_>) -> Option<Kernel> {
    let (x, out) = (call.tensor(0, "self")?, call.output(0)?);
    let outputs = out.numel().max(1);
    let inputs = x.numel() / outputs;
    let kept = out.shape.last() == x.shape().last() && out.numel() > 1;
    Some(match kept {
        true => (Class::ReduceColumns, x.dtype(), [inputs, outputs, 0, 0], 1),
        false => (Class::ReduceRows, x.dtype(), [outputs, inputs, 0, 0], 1),
    })
}

/// Copies between host and GPU.
fn copied(name: &str, line: &Op<'_>, call: &Call<'_>) -> Option<Kernel> {
    let on_host = |value: &Value| matches!(value, Value::Tensor(TensorRef { storage: None, .. }));
    let crosses = match name {
        "_local_scalar_dense" => true,
        "_to_copy" | "copy_" | "_copy_from" => line.args.iter().chain(&line.outputs).any(on_host),
        _ => false,
    };
    let dtype = call.output(0).map_or(DType::F32, |out| out.dtype);
    crosses.then_some((Class::HostCopy, dtype, [0; 4], 1))
}

/// Elementwise kernel; strided if layouts of operands differ from that of the result.
fn pointwise(call: &Call<'_>, line: &Op<'_>, tables: &Tables) -> Kernel {
    let out = call.output(0);
    let (mut alike, mut dtype) = (true, out.map(|out| out.dtype));
    for value in line.args.iter().chain(line.kwargs.values()) {
        value.tensors(&mut |tensor: &TensorRef| {
            let Some(layout) = tables.layouts.get(tensor.meta as usize) else {
                return;
            };
            dtype = dtype.or(Some(layout.dtype));
            let same = out.is_none_or(|out| layout.shape == out.shape && layout.strides == out.strides);
            alike &= same || layout.numel() <= 1;
        });
    }
    let class = if alike { Class::Pointwise } else { Class::Strided };
    (class, dtype.unwrap_or(DType::F32), [0; 4], 1)
}
