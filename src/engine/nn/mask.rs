//! Ids and attention masks (`transformers/masking_utils.py`).

use crate::dtype::DType;
use crate::setup::Attention;
use crate::tape::{Mask, Tape, Tensor};

/// A tensor of ids outside the graph.
pub fn ids(t: &Tape, shape: &[u64], name: &'static str) -> Tensor {
    t.empty(shape, DType::I64, name)
}

/// `create_causal_mask` for a padding mask without padding: SDPA needs none, eager attention
/// gets a bias of [batch, 1, seq, seq] in the type of the embeddings.
pub fn causal_mask(t: &Tape, attn: Attention, embeds: &Tensor) -> Option<Mask> {
    let [batch, seq] = [embeds.size(0), embeds.size(1)];
    let padding = t.empty([batch, seq], DType::Bool, "padding mask");
    match attn {
        Attention::Sdpa => {
            all_true(t, &padding);
            None
        }
        Attention::Eager => {
            let allowed = allowed_positions(t, batch, seq);
            Some(Mask::Bias(as_bias(t, &allowed, embeds.dtype())))
        }
    }
}

/// `fast_all`: the sum of the mask against its size.
fn all_true(t: &Tape, mask: &Tensor) {
    let sum = t.empty([], DType::I64, "sum");
    drop(t.compute(mask, DType::I64, "mask as integers"));
    let equal = t.empty([], DType::Bool, "comparison");
    drop((sum, equal));
}

/// `sdpa_mask`: whether each key may be attended to, [batch, 1, seq, seq].
fn allowed_positions(t: &Tape, batch: u64, seq: u64) -> Tensor {
    let arange = |n: u64, name| t.empty([n], DType::I64, name);
    let batches = arange(batch, "batch positions");
    let heads = arange(1, "head positions");
    let shifted = |name| {
        let raw = arange(seq, name);
        let moved = arange(seq, name);
        drop(raw);
        moved
    };
    let queries = shifted("query positions");
    let keys = shifted("key positions");
    let causal = {
        let all = t.empty([], DType::Bool, "true");
        let lower = t.empty([seq, seq], DType::Bool, "key ≤ query");
        let both = t.empty([1, 1, seq, seq], DType::Bool, "mask and mask");
        drop((lower, all));
        both
    };
    let padded = {
        // each index is broadcast to [batch, 1, 1, seq] and copied where that is not contiguous
        let copies = if batch == 1 { 1 } else { 2 };
        let index: Vec<Tensor> = (0..copies).map(|_| arange(batch * seq, "index")).collect();
        let gathered = t.empty([batch, 1, 1, seq], DType::Bool, "padding of keys");
        drop(index);
        gathered
    };
    let allowed = t.empty([batch, 1, seq, seq], DType::Bool, "mask and mask");
    drop((padded, causal, batches, heads, queries, keys));
    allowed
}

/// `torch.where(mask, 0, min)`.
fn as_bias(t: &Tape, allowed: &Tensor, dtype: DType) -> Tensor {
    let zero = t.empty([], dtype, "0");
    let lowest = t.empty([], dtype, "lowest value");
    let bias = t.empty(*allowed.shape(), dtype, "additive mask");
    drop((lowest, zero));
    bias
}
