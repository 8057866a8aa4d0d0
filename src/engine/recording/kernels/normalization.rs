//! Layer norm, softmax and pooling: copies of what does not lie in one run.

use super::call::Call;

/// `native_layer_norm(x, …)`.
pub(super) fn layer_norm(call: &Call<'_>) {
    let dense = call.tensor(0, "input").and_then(|x| call.tape.dense_copy(&x));
    call.make();
    drop(dense);
}

/// `native_layer_norm_backward(grad, x, …)`.
pub(super) fn layer_norm_backward(call: &Call<'_>) {
    let dense = call.tensor(1, "input").and_then(|x| call.tape.dense_copy(&x));
    call.make();
    let grad = call.tensor(0, "grad_out").and_then(|grad| call.tape.dense_copy(&grad));
    drop((grad, dense));
}

/// `_softmax(x, dim, half_to_float)`.
pub(super) fn softmax(call: &Call<'_>) {
    call.make();
    drop(call.tensor(0, "self").and_then(|x| call.tape.dense_copy(&x)));
}

/// `_softmax_backward_data(grad, output, dim, input_dtype)`; whether the two are multiplied first.
pub(super) fn softmax_backward(call: &Call<'_>, multiplied: bool) {
    let Some(grad) = call.tensor(0, "grad_output") else {
        return call.make();
    };
    let dense = call.tape.dense_copy(&grad);
    call.make();
    let product = multiplied.then(|| call.tape.multiplied_by_result(&grad));
    drop((product, dense));
}

/// `_safe_softmax(x, dim)`.
pub(super) fn safe_softmax(call: &Call<'_>) {
    call.make();
    if let Some(x) = call.tensor(0, "self").filter(|x| x.dim() > 0) {
        call.tape.in_safe_softmax(&x);
    }
}

/// `avg_pool2d_backward(grad, x, …)`.
pub(super) fn pool_backward(call: &Call<'_>) {
    call.make();
    drop(
        call.tensor(0, "grad_output")
            .and_then(|grad| call.tape.dense_copy(&grad)),
    );
}
