//! Copies from the GPU to the host.

use super::super::value::{TensorRef, Value};
use super::call::Call;

/// Replays `x.to("cpu")`: a tensor with gaps or repeated elements is first made contiguous on the GPU
/// (`copy_requires_temporaries` in `aten/src/ATen/native/cuda/Copy.cu`).
pub(super) fn to_host(call: &Call<'_>) {
    call.make();
    let leaves = matches!(call.result(0), Some(Value::Tensor(TensorRef { storage: None, .. })));
    let x = call.tensor(0, "self").filter(|x| leaves && !x.is_dense());
    drop(x.and_then(|x| call.tape.dense_copy(&x)));
}
