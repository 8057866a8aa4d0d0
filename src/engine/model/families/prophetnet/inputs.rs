//! Kinds of distances and masks of all positions that the model has, of which a text takes the first.

use super::ProphetNetConfig;
use crate::dtype::DType::{self, Bool, F32, I32, I64};
use crate::tape::{Tape, Tensor};

/// Of the text's own stream, and of the streams that predict.
pub(super) struct Pair {
    pub main: Tensor,
    pub predict: Tensor,
}

/// Makes a tensor of each operation's result.
fn made(t: &Tape, shape: &[u64], dtype: DType, name: &'static str) -> Tensor {
    t.empty(shape, dtype, name)
}

/// Runs operations on one tensor after the other: each input is freed once the result is there.
fn chain(t: &Tape, shape: &[u64], steps: &[(DType, &'static str)]) -> Option<Tensor> {
    let mut last = None;
    for &(dtype, name) in steps {
        last = Some(made(t, shape, dtype, name));
    }
    last
}

/// `compute_relative_buckets` of distances of this shape.
fn buckets(t: &Tape, shape: &[u64]) -> Tensor {
    let distance = {
        let negated = made(t, shape, I64, "neg");
        let zeros = made(t, shape, I64, "zeros");
        let distance = made(t, shape, I64, "max");
        drop((negated, zeros));
        distance
    };
    let is_small = made(t, shape, Bool, "is small");
    let of_large = [
        (F32, "float"),
        (F32, "by the exact ones"),
        (F32, "log"),
        (F32, "by a logarithm"),
        (F32, "times the others"),
        (F32, "plus the exact ones"),
    ];
    let large = chain(t, shape, &of_large);
    let large = {
        let most = chain(t, shape, &[(F32, "ones"), (F32, "the most")]);
        let bounded = made(t, shape, F32, "min");
        drop(most);
        let whole = made(t, shape, I32, "as int32");
        drop((bounded, large));
        whole
    };
    let small = made(t, shape, I32, "distance as int32");
    let chosen = made(t, shape, I32, "where");
    drop(small);
    let out = made(t, shape, I32, "plus 0");
    drop((distance, large, chosen, is_small));
    out
}

/// `compute_buffered_relative_buckets` of a text: [batch, seq, seq] and [batch, seq, 2 seq].
pub(super) fn relative_buckets(t: &Tape, c: &ProphetNetConfig, [batch, seq]: [u64; 2]) -> Pair {
    let all = c.positions - 1;
    let positions = {
        let row = made(t, &[all], I64, "positions from the host");
        let positions = made(t, &[1, all], I64, "repeat");
        drop(row);
        positions
    };
    let square = chain(t, &[1, all, all], &[(I64, "repeat"), (I64, "distance")]);
    let wide = {
        let both = {
            let before = made(t, &[1, all], I64, "minus 1");
            let both = made(t, &[1, 2 * all], I64, "cat");
            drop(before);
            both
        };
        let repeated = made(t, &[1, all, 2 * all], I64, "repeat");
        drop(both);
        let wide = made(t, &[1, all, 2 * all], I64, "distance");
        drop(repeated);
        wide
    };
    let main = buckets(t, &[1, all, all]);
    let predict = buckets(t, &[1, all, 2 * all]);
    drop((square, wide));
    let of_main = made(t, &[batch, seq, seq], I32, "repeat");
    drop(main);
    let joined = made(t, &[1, seq, 2 * seq], I32, "cat");
    let of_predict = made(t, &[batch, seq, 2 * seq], I32, "repeat");
    drop((predict, joined, positions));
    Pair {
        main: of_main,
        predict: of_predict,
    }
}

/// `prepare_attention_mask` and `prepare_predict_attention_mask` in the type of the hidden states: [batch, heads, seq, seq]
/// and [batch, heads, streams, seq, 2 seq].
pub(super) fn masks(t: &Tape, c: &ProphetNetConfig, h: &Tensor) -> Pair {
    let (batch, seq, dtype) = (h.size(0), h.size(1), h.dtype());
    let main = {
        let causal = chain(t, &[seq, seq], &[(dtype, "full"), (dtype, "triu")]);
        let padding = chain(t, &[batch, 1, 1, seq], &[(F32, "rsub"), (F32, "mul")]);
        let sum = made(t, &[batch, c.heads, seq, seq], F32, "add");
        drop(padding);
        let mask = t.to_dtype(&sum, dtype);
        drop((sum, causal));
        mask
    };
    let causal = {
        let bias = stream_bias(t, c, dtype);
        let causal = made(t, &[c.streams, seq, 2 * seq], dtype, "cat");
        drop(bias);
        causal
    };
    let padding = chain(t, &[batch, 1, 1, 1, seq], &[(F32, "rsub"), (F32, "mul")]);
    let joined = {
        let zeros = made(t, &[batch, c.heads, c.streams, seq, seq], F32, "zeros");
        let joined = made(t, &[batch, c.heads, c.streams, seq, 2 * seq], F32, "cat");
        drop((zeros, padding));
        joined
    };
    let sum = made(t, &[batch, c.heads, c.streams, seq, 2 * seq], F32, "add");
    // The variable of the padding gets the joined one, which lives until the function returns.
    let predict = t.to_dtype(&sum, dtype);
    drop((sum, joined, causal));
    Pair { main, predict }
}

/// `ngram_attention_bias`, [streams, positions, 2 positions].
fn stream_bias(t: &Tape, c: &ProphetNetConfig, dtype: DType) -> Tensor {
    let (n, all) = (c.streams, c.positions);
    let steps = [0, 1].map(|_| made(t, &[all], I64, "arange"));
    let offsets = chain(t, &[n], &[(I64, "arange"), (I64, "neg"), (I64, "plus 1")]);
    let left = {
        let later = {
            let distance = made(t, &[1, all, all], I64, "distance");
            let later = made(t, &[n, all, all], Bool, "ge");
            drop(distance);
            later
        };
        let not_first = made(t, &[1, 1, all], Bool, "ne");
        let left = made(t, &[n, all, all], Bool, "and");
        drop((later, not_first));
        left
    };
    let right = made(t, &[1, all, all], Bool, "ne");
    let numbers = ["lowest", "zero"].map(|name| made(t, &[], dtype, name));
    let blocks = ["left", "right"].map(|name| made(t, &[n, all, all], dtype, name));
    let out = made(t, &[n, all, 2 * all], dtype, "cat");
    drop((blocks, numbers, right, left, offsets, steps));
    out
}
