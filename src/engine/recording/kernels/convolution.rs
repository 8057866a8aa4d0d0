//! Convolutions: contiguous copies and cuDNN's workspaces.

use super::super::layout::Layout;
use super::call::Call;
use crate::dtype::DType;
use crate::tape::{Tape, Tensor};

/// Maximum side of an image, number of images and number of channels of a convolution.
const MOST_EXTENT: u64 = 1 << 20;

/// Arguments of a convolution beside its tensors.
struct Steps {
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    transposed: bool,
    groups: i64,
}

impl Steps {
    fn of(call: &Call<'_>, first: usize) -> Self {
        let list = |at, name| call.ints(at, name).unwrap_or_default();
        Self {
            stride: list(first, "stride"),
            padding: list(first + 1, "padding"),
            dilation: list(first + 2, "dilation"),
            transposed: call.is(first + 3, "transposed"),
            groups: call.int(first + 5, "groups").unwrap_or(1),
        }
    }

    /// Returns true if each element is read once: the kernel is as long as its stride. Workspaces of such convolutions
    /// were measured; a kernel of one element is a matrix product, which takes none.
    fn cuts_patches(&self, x: &Tensor, weight: &Tensor) -> bool {
        let kernel = &weight.shape()[2..];
        let along = |given: &[i64], i: usize| given.get(i).or(given.first()).copied();
        let strides =
            (0..kernel.len()).all(|i| along(&self.stride, i).and_then(|s| u64::try_from(s).ok()) == Some(kernel[i]));
        strides
            && x.dim() == weight.dim()
            && matches!(x.dim(), 4 | 5)
            && x.shape()
                .iter()
                .chain(weight.shape().iter())
                .all(|&extent| extent <= MOST_EXTENT)
            && x.size(1) == weight.size(1)
            && self.padding.iter().all(|&p| p == 0)
            && self.dilation.iter().all(|&d| d == 1)
            && !self.transposed
            && self.groups == 1
    }
}

/// Returns true if PyTorch's own kernels convolve each channel of a sequence by itself, which take no workspace; cuDNN does
/// so in fp16 (`use_cudnn_depthwise` in `aten/src/ATen/native/Convolution.cpp`).
fn is_depthwise(x: &Tensor, weight: &Tensor, steps: &Steps) -> bool {
    let channels = x.shape().get(1).copied().unwrap_or(0);
    x.dim() == 3
        && weight.dim() == 3
        && channels > 1
        && u64::try_from(steps.groups) == Ok(channels)
        && weight.size(0) == channels
        && !steps.transposed
        && matches!(x.dtype(), DType::F32 | DType::Bf16)
        && x.numel() <= i32::MAX as u64
}

/// Returns true if a kernel covers a single element.
fn is_pointwise(weight: &Tensor) -> bool {
    weight.shape().iter().skip(2).all(|&extent| extent == 1)
}

/// Copies the weight to channels last if the image has them and the weight does not (`cudnn_conv_suggest_memory_format`
/// in `aten/src/ATen/native/ConvUtils.h`); cuDNN then needs no workspace beyond some hundred bytes.
fn weight_like(call: &Call<'_>, x: &Tensor, weight: &Tensor) -> Option<Tensor> {
    let copies = x.has_channels_last() && !weight.has_channels_last() && !is_pointwise(weight);
    copies.then(|| call.tape.empty_like(weight, weight.dtype(), "weight in channels last"))
}

/// Returns a tensor on the tape with the layout of a result.
fn like(tape: &Tape, x: &Tensor, layout: &Layout) -> Tensor {
    tape.view_of(x.storage(), (layout.shape, layout.strides), layout.dtype)
}

/// Replays `convolution(x, weight, bias, …)`; returns false if its workspace is unknown.
pub(super) fn forward(call: &Call<'_>) -> bool {
    let (Some(x), Some(weight)) = (call.tensor(0, "input"), call.tensor(1, "weight")) else {
        return false;
    };
    let steps = Steps::of(call, 3);
    if is_depthwise(&x, &weight, &steps) {
        let dense = call.tape.dense_copy(&x);
        call.make();
        drop(dense);
        return true;
    }
    let known = weight.dim() > 2 && steps.cuts_patches(&x, &weight);
    if x.has_channels_last() || known && is_pointwise(&weight) {
        call.make();
        drop(weight_like(call, &x, &weight));
        return known;
    }
    if !known {
        return false;
    }
    let dense = call.tape.dense_copy(&x);
    call.make();
    let out = call
        .output(0)
        .filter(|out| out.shape.len() == x.dim() && out.numel() > 0);
    if let Some(out) = out {
        call.tape.in_convolution(&x, &weight, &like(call.tape, &x, out));
    }
    drop(dense);
    out.is_some()
}

/// Replays `convolution_backward(grad, x, weight, bias_sizes, …)`; returns false if its workspace is unknown.
pub(super) fn backward(call: &Call<'_>) -> bool {
    let tensors = (
        call.tensor(0, "grad_output"),
        call.tensor(1, "input"),
        call.tensor(2, "weight"),
    );
    let (Some(grad), Some(x), Some(weight)) = tensors else {
        return false;
    };
    let steps = Steps::of(call, 4);
    let depthwise = grad.dim() == x.dim() && is_depthwise(&x, &weight, &steps);
    let known = depthwise || weight.dim() > 2 && grad.dim() == x.dim() && steps.cuts_patches(&x, &weight);
    let held = depthwise.then(|| call.tape.dense_copy(&x));
    if depthwise {
        let dense = call.tape.dense_copy(&grad);
        call.make_only(&[1, 0]);
        drop(dense);
    } else if x.has_channels_last() || known && is_pointwise(&weight) {
        let is_last = x.has_channels_last();
        let fits = if is_last {
            grad.is_channels_last_contiguous()
        } else {
            grad.is_contiguous()
        };
        let copy = (!fits).then(|| {
            call.tape
                .empty(*grad.shape(), grad.dtype(), "gradient in the image's layout")
        });
        call.make_only(&[0]);
        if call.gives(0) {
            drop(weight_like(call, &x, &weight));
        }
        call.make_only(&[1]);
        drop(copy);
    } else if known {
        let dense = [call.tape.dense_copy(&x), call.tape.dense_copy(&grad)];
        call.make_only(&[0, 1]);
        if call.gives(1) {
            call.tape.in_weight_gradient(&x, &weight, &grad);
        }
        drop(dense);
    }
    call.make();
    if call.gives(2) && grad.dim() > 1 {
        let reduced: Vec<bool> = (0..grad.dim()).map(|i| i != 1).collect();
        super::reductions::sum_of(call.tape, &grad, &reduced);
    }
    drop(held);
    known
}
