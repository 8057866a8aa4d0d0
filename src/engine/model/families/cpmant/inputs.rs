//! What the model makes of token ids before its blocks: the prompt before each sample, segments, and the mask.

use crate::dtype::DType::{self, Bool, F32, I32, I64};
use crate::tape::{Tape, Tensor};

/// Ids with the prompt before each sample, and what is told of each of its positions.
pub(super) struct Inputs {
    /// [batch, prompt + seq].
    pub ids: Tensor,
    /// [batch, prompt + seq].
    pub segment: Tensor,
    /// Variables of the caller that live as long as its forward: context, position, span, and lengths.
    _held: [Tensor; 4],
}

/// Makes a tensor of each operation's result.
fn made(t: &Tape, shape: &[u64], dtype: DType, name: &'static str) -> Tensor {
    t.empty(shape, dtype, name)
}

impl Inputs {
    /// Token ids [batch, seq] → ids and segments with a prompt of `prompt` tokens before them.
    pub fn new(t: &Tape, ids: &Tensor, prompt: u64) -> Self {
        let [batch, seq] = [ids.size(0), ids.size(1)];
        let (of_ids, whole) = ([batch, seq], [batch, prompt + seq]);
        let narrow = made(t, &of_ids, I32, "ids as int32");
        let segment = {
            let chosen = {
                let tokens = made(t, &of_ids, Bool, "tokens");
                let numbers = ["2", "0"].map(|name| made(t, &[], I64, name));
                let chosen = made(t, &of_ids, I64, "where");
                drop((tokens, numbers));
                chosen
            };
            let segment = made(t, &of_ids, I32, "segment");
            drop(chosen);
            segment
        };
        let length = {
            let sum = {
                let tokens = made(t, &of_ids, Bool, "tokens");
                let sum = made(t, &[batch], I64, "sum");
                drop(made(t, &of_ids, I64, "copy in the type that is summed"));
                drop(tokens);
                sum
            };
            let length = made(t, &[batch], I32, "length");
            drop(sum);
            length
        };
        let ids = {
            let prompts = {
                let steps = made(t, &[prompt], I32, "arange");
                let prompts = made(t, &[batch, prompt], I32, "repeat");
                drop(steps);
                prompts
            };
            let ids = made(t, &whole, I32, "ids");
            drop((narrow, prompts));
            ids
        };
        let segment = {
            let zeros = made(t, &[batch, prompt], I32, "zeros");
            let whole = made(t, &whole, I32, "segments");
            drop((segment, zeros));
            whole
        };
        let context = made(t, &whole, I32, "context");
        let position = {
            let steps = made(t, &[prompt + seq], I32, "arange");
            let position = made(t, &whole, I32, "position");
            drop(steps);
            position
        };
        let span = made(t, &whole, I32, "span");
        Self {
            ids,
            segment,
            _held: [context, position, span, length],
        }
    }

    /// `_prepare_attention_mask`, [batch, prompt + seq, prompt + seq], of whole numbers.
    pub fn mask(&self, t: &Tape, prompt: u64) -> Tensor {
        let [batch, all] = [self.ids.size(0), self.ids.size(1)];
        let (seq, square) = (all - prompt, [batch, all, all]);
        let earlier = {
            let steps = [0, 1].map(|_| made(t, &[all], I64, "arange"));
            let earlier = made(t, &[all, all], Bool, "earlier");
            drop(steps);
            earlier
        };
        let seen = {
            let both = {
                let outside = made(t, &[batch, all, 1], Bool, "outside the context");
                let both = made(t, &square, Bool, "and");
                drop(outside);
                both
            };
            let seen = made(t, &square, I32, "or");
            drop(both);
            seen
        };
        let within = {
            let same = made(t, &square, Bool, "same span");
            let within = made(t, &square, I32, "and");
            drop((seen, same));
            within
        };
        let tokens = {
            let after = {
                let steps = {
                    let row = made(t, &[seq], I64, "positions from the host");
                    let rows = made(t, &[batch, seq], I64, "repeat");
                    drop(row);
                    rows
                };
                let after = made(t, &[batch, seq], Bool, "no padding");
                drop(steps);
                after
            };
            let before = {
                let ones = made(t, &[batch, prompt], F32, "ones");
                let before = made(t, &[batch, prompt], Bool, "bool");
                drop(ones);
                before
            };
            let tokens = made(t, &[batch, all], Bool, "cat");
            drop((after, before));
            tokens
        };
        let pairs = made(t, &square, Bool, "and");
        let mask = made(t, &square, I32, "mask");
        drop((pairs, tokens, within, earlier));
        mask
    }

    /// Kinds of pairs of positions, [batch, queries, keys]: distances within a segment, and pairs of segments. The caller's
    /// variable holds the distances, which come second.
    pub fn buckets(&self, t: &Tape) -> [Tensor; 2] {
        let [batch, all] = [self.ids.size(0), self.ids.size(1)];
        let square = [batch, all, all];
        let of_segments = {
            let sum = {
                let scaled = made(t, &[batch, all, 1], I32, "segment times their number");
                let sum = made(t, &square, I32, "plus a segment");
                drop(scaled);
                sum
            };
            let shifted = made(t, &square, I32, "plus the distances");
            drop(sum);
            shifted
        };
        let of_distances = distances(t, all);
        let same = made(t, &square, Bool, "same segment");
        let buckets = made(t, &square, I32, "buckets");
        drop((of_segments, same));
        [buckets, of_distances]
    }
}

/// `_position_bucket` of all pairs of `n` positions, [n, n].
fn distances(t: &Tape, n: u64) -> Tensor {
    let step = |dtype, name| made(t, &[n, n], dtype, name);
    let relative = {
        let steps = [0, 1].map(|_| made(t, &[n], I32, "arange"));
        let relative = step(I32, "relative position");
        drop(steps);
        relative
    };
    let buckets = {
        let sign = {
            let later = step(Bool, "later");
            let sign = step(I32, "as int32");
            drop(later);
            sign
        };
        let buckets = step(I32, "times the half");
        drop(sign);
        buckets
    };
    let distance = step(I32, "abs");
    drop(relative);
    let is_small = step(Bool, "is small");
    let of_large = [
        (F32, "float"),
        (F32, "by the exact ones"),
        (F32, "log"),
        (F32, "by a logarithm"),
        (F32, "times the others"),
        (I32, "as int32"),
        (I32, "plus the exact ones"),
    ];
    // Each operation's input is freed once its result is there.
    let mut large = None;
    for (dtype, name) in of_large {
        large = Some(step(dtype, name));
    }
    let bounded = {
        let most = step(I32, "the most");
        let bounded = step(I32, "min");
        drop((large, most));
        bounded
    };
    drop(step(I32, "where"));
    drop((bounded, is_small, distance));
    buckets
}
