//! Layer norm, softmax and pooling: contiguous copies of their operands.

use super::call::Call;
use super::norms;
use crate::tape::dims::is_contiguous;

/// Replays `native_layer_norm(x, …)`.
pub(super) fn layer_norm(call: &Call<'_>) {
    let dense = call.tensor(0, "input").and_then(|x| call.tape.dense_copy(&x));
    call.make();
    drop(dense);
}

/// Replays `native_layer_norm_backward(grad, x, …)`.
pub(super) fn layer_norm_backward(call: &Call<'_>) {
    let dense = call.tensor(1, "input").and_then(|x| call.tape.dense_copy(&x));
    call.make();
    let grad = call.tensor(0, "grad_out").and_then(|grad| call.tape.dense_copy(&grad));
    if let Some(x) = call.tensor(1, "input") {
        norms::summed_in_two(call, &x, 1);
    }
    drop((grad, dense));
}

/// Replays `_fused_rms_norm_backward(grad, x, shape, rstd, weight, mask)`.
pub(super) fn rms_norm_backward(call: &Call<'_>) {
    let dense = call.tensor(1, "input").and_then(|x| call.tape.dense_copy(&x));
    call.make();
    if let Some(x) = call.tensor(1, "input") {
        norms::summed_in_two(call, &x, 1);
    }
    drop(dense);
}

/// Replays `_softmax(x, dim, half_to_float)`.
pub(super) fn softmax(call: &Call<'_>) {
    call.make();
    drop(call.tensor(0, "self").and_then(|x| call.tape.dense_copy(&x)));
}

/// Replays `logsumexp(x, dim, keepdim)`.
pub(super) fn logsumexp(call: &Call<'_>) {
    call.make();
    let (Some(x), Some(out)) = (call.tensor(0, "self"), call.output(0)) else {
        return;
    };
    call.tape.in_logsumexp(&x, out.shape);
}

/// Replays `_softmax_backward_data(grad, output, dim, input_dtype)`; `multiplied` is true if the two are multiplied
/// first.
pub(super) fn softmax_backward(call: &Call<'_>, multiplied: bool) {
    let Some(grad) = call.tensor(0, "grad_output") else {
        return call.make();
    };
    let dense = call.tape.dense_copy(&grad);
    call.make();
    let product = multiplied.then(|| call.tape.multiplied_by_result(&grad));
    drop((product, dense));
}

/// Replays `_safe_softmax(x, dim)`.
pub(super) fn safe_softmax(call: &Call<'_>) {
    call.make();
    if let Some(x) = call.tensor(0, "self").filter(|x| x.dim() > 0) {
        call.tape.in_safe_softmax(&x);
    }
}

/// Replays `_upsample_bilinear2d_aa(x, …)`: a result that is not contiguous is computed in a contiguous buffer
/// (`aten/src/ATen/native/cuda/UpSampleBilinear2d.cu`).
pub(super) fn resized(call: &Call<'_>) {
    call.make();
    let out = call.output(0).filter(|out| !is_contiguous(&out.shape, &out.strides));
    drop(out.map(|out| call.tape.empty(out.shape, out.dtype, "contiguous result")));
}

/// Replays `mse_loss(x, target, reduction)` and similar losses: allocates the losses of all elements before they are
/// summed (`aten/src/ATen/native/Loss.cpp`).
pub(super) fn reduced_loss(call: &Call<'_>) {
    call.make();
    let reduces = call.int(2, "reduction") != Some(0);
    let x = call.tensor(0, "self").filter(|_| reduces);
    drop(x.map(|x| call.tape.empty(*x.shape(), x.dtype(), "losses")));
}

/// Replays `im2col(x, …)`, which makes a contiguous copy.
pub(super) fn patches(call: &Call<'_>) {
    let dense = call.tensor(0, "self").and_then(|x| call.tape.dense_copy(&x));
    call.make();
    drop(dense);
}

/// Replays `col2im(x, …)`, which makes a contiguous copy once the result is there.
pub(super) fn patches_back(call: &Call<'_>) {
    call.make();
    drop(call.tensor(0, "self").and_then(|x| call.tape.dense_copy(&x)));
}

/// Replays `avg_pool2d_backward(grad, x, …)` and other operations that make the gradient contiguous once their result is
/// there.
pub(super) fn pool_backward(call: &Call<'_>) {
    call.make();
    drop(
        call.tensor(0, "grad_output")
            .and_then(|grad| call.tape.dense_copy(&grad)),
    );
}
