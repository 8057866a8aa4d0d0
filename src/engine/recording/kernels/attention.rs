//! Fused attention.

use super::call::Call;
use crate::dtype::DType;
use crate::tape::{FlashCaller, Tensor};

/// Replays a fused attention or its backward; returns false if its memory is unknown.
pub(super) fn attention(name: &str, call: &Call<'_>) -> bool {
    match name {
        "_scaled_dot_product_cudnn_attention" => {
            call.tape.in_cudnn_attention(|| call.make_in(&[6, 7]));
        }
        "_scaled_dot_product_efficient_attention" => {
            let (Some(q), Some(v)) = (query(call, 0), call.tensor_of(2, "value", 4)) else {
                return false;
            };
            call.tape.in_efficient_attention([&q, &v], || call.make());
        }
        "_scaled_dot_product_flash_attention" => {
            let (Some(q), Some(k)) = (query(call, 0), call.tensor_of(1, "key", 4)) else {
                return false;
            };
            if !belong(&q, &k) {
                return false;
            }
            let dropout = call.number(3, "dropout_p").unwrap_or_default();
            call.make();
            if dropout > 0.0 {
                // Seed and offset of the random numbers that the kernel is given.
                drop(call.tape.empty([2], DType::I64, "seed and offset"));
            }
            drop(call.tape.flash_partials(FlashCaller::PyTorch, [&q, &k], dropout));
        }
        "_scaled_dot_product_cudnn_attention_backward" => {
            let Some([grad, q, k]) = operands(call) else {
                return false;
            };
            call.tape.in_cudnn_attention_backward([&grad, &q, &k], || call.make());
        }
        "_scaled_dot_product_efficient_attention_backward" => {
            let Some([grad, q, k]) = operands(call) else {
                return false;
            };
            call.tape
                .in_efficient_attention_backward([&grad, &q, &k], || call.make());
        }
        "_scaled_dot_product_flash_attention_backward" => {
            let (Some([grad, q, k]), Some(out)) = (operands(call), call.tensor_of(4, "out", 4)) else {
                return false;
            };
            call.tape
                .in_flash_backward(FlashCaller::PyTorch, [&grad, &out, &q, &k], || call.make());
        }
        _ => return false,
    }
    true
}

/// Returns the queries, [batch, heads, positions, width].
fn query(call: &Call<'_>, at: usize) -> Option<Tensor> {
    call.tensor_of(at, "query", 4)
}

/// Returns the gradient of the output, the queries and the keys of a backward.
fn operands(call: &Call<'_>) -> Option<[Tensor; 3]> {
    let grad = call.tensor_of(0, "grad_out", 4)?;
    let (q, k) = (query(call, 1)?, call.tensor_of(2, "key", 4)?);
    belong(&q, &k).then_some([grad, q, k])
}

/// Returns true if queries and keys belong to one attention: equal samples and elements, and a whole number of query
/// heads for each key head.
fn belong(q: &Tensor, k: &Tensor) -> bool {
    let longest = q.size(2).max(k.size(2));
    q.size(0) == k.size(0)
        && q.size(3) == k.size(3)
        && q.size(1).is_multiple_of(k.size(1))
        && Call::fit(&[q.size(0), q.size(1), longest, q.size(3)])
}
