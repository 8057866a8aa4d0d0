//! `mamba2_chunk_scan`: states within chunks of positions, and from chunk to chunk.

use crate::dtype::DType;
use crate::tape::{Tape, Tensor};

/// Arguments of the scan.
pub struct ChunkScanCall<'a> {
    /// Input [batch, seq, heads, width].
    pub x: &'a Tensor,
    /// Time steps [batch, seq, heads].
    pub step: &'a Tensor,
    /// Decay of the state, [heads] in fp32.
    pub a: &'a Tensor,
    /// Weight of the input in the state, [batch, seq, groups, state].
    pub b: &'a Tensor,
    /// Weight of the state in the output, [batch, seq, groups, state].
    pub c: &'a Tensor,
    /// Weight of the input in the output, [heads].
    pub d: &'a Tensor,
    /// Bias of time steps, [heads].
    pub step_bias: &'a Tensor,
    /// Positions of a chunk.
    pub chunk: u64,
}

/// Inputs in fp32 and in chunks, [batch, chunks, positions, heads, …].
struct Chunked {
    x: Tensor,
    /// [batch, heads, chunks, positions].
    a: Tensor,
    b: Tensor,
    c: Tensor,
    /// The input's own part of the output.
    skipped: Tensor,
    _step: Tensor,
}

/// [batch, seq, heads, width] → the same, in fp32, and the last state if it is returned.
pub fn chunk_scan(t: &Tape, call: &ChunkScanCall<'_>, returns_state: bool) -> (Tensor, Option<Tensor>) {
    let Chunked {
        x,
        a,
        b,
        c,
        skipped,
        _step,
    } = chunked(t, call);
    let sums = t.cumsum_last(&a);
    let (within, _kept_within) = within_chunks(t, [&x, &a, &b, &c]);
    let (mut states, decay, _weighted) = chunk_states(t, [&x, &b, &sums]);
    let zeros = t.empty(
        [x.size(0), 1, x.size(3), x.size(4), b.size(4)],
        DType::F32,
        "zeros_like",
    );
    states = t.cat(&[&zeros, &states], 1);
    let between = {
        let last = t.pad_end(&t.select(&sums, 3), 2, 1);
        let segments = segment_sum(t, last);
        t.transpose(&t.exp(&segments), 1, 3)
    };
    let all_states = {
        let decays = t.unsqueeze(&t.unsqueeze(&between, 4), 5);
        let product = t.mul(&decays, &t.unsqueeze(&states, 2));
        t.sum_dim(&product, 1)
    };
    let chunks = x.size(1);
    states = t.slice(&all_states, 1, chunks);
    let out_decay = t.exp(&sums);
    let seen = t.mul(&t.unsqueeze(&c, 4), &t.unsqueeze(&states, 2));
    let before = {
        let summed = t.sum_dim(&seen, 5);
        t.mul(&summed, &t.unsqueeze(&t.permute(&out_decay, &[0, 2, 3, 1]), 4))
    };
    let mut out = t.add(&within, &before);
    out = t.reshape(&out, [x.size(0), chunks * call.chunk, x.size(3), x.size(4)]);
    out = t.add(&out, &skipped);
    drop((decay, zeros));
    let last = returns_state.then(|| t.select(&all_states, 1));
    (t.slice(&out, 1, call.x.size(1)), last)
}

/// Casts, pads and discretises the inputs, and splits positions into chunks.
fn chunked(t: &Tape, call: &ChunkScanCall<'_>) -> Chunked {
    let mut step = {
        let bias = t.to_dtype(call.step_bias, call.step.dtype());
        t.add(call.step, &bias)
    };
    step = t.softplus(&step);
    step = t.clamp_between(&step);
    let mut x = t.to_dtype(call.x, DType::F32);
    let times = x.size(2) / call.b.size(2);
    let of_heads = |part: &Tensor| {
        let wide = t.to_dtype(part, DType::F32);
        t.repeat_each(&wide, times, 2)
    };
    let (b, c) = (of_heads(call.b), of_heads(call.c));
    let missing = (call.chunk - x.size(1) % call.chunk) % call.chunk;
    let skipped = {
        let d = t.unsqueeze(call.d, 1);
        let padded = t.pad_end(&x, 1, missing);
        t.mul(&d, &padded)
    };
    x = {
        let wide = t.to_dtype(&t.unsqueeze(&step, 3), DType::F32);
        t.mul(&x, &wide)
    };
    let a = {
        let wide = t.to_dtype(&step, DType::F32);
        t.mul(call.a, &wide)
    };
    let split = |part: &Tensor| {
        let padded = t.pad_end(part, 1, missing);
        let chunks = padded.size(1) / call.chunk;
        let shape: Vec<u64> = [padded.size(0), chunks, call.chunk]
            .into_iter()
            .chain((2..padded.dim()).map(|i| padded.size(i)))
            .collect();
        t.reshape(&padded, &shape[..])
    };
    let parts = [&x, &a, &b, &c].map(split);
    drop((x, a, b, c));
    let [x, a, b, c] = parts;
    Chunked {
        a: t.permute(&a, &[0, 3, 1, 2]),
        x,
        b,
        c,
        skipped,
        _step: step,
    }
}

/// Output of each position from those of its chunk, [batch, chunks, positions, heads, width], and what lives as long as
/// the scan.
fn within_chunks(t: &Tape, [x, a, b, c]: [&Tensor; 4]) -> (Tensor, [Tensor; 3]) {
    let decay = {
        let segments = segment_sum(t, a.clone());
        t.exp(&segments)
    };
    let weights = {
        let product = t.mul(&t.unsqueeze(c, 3), &t.unsqueeze(b, 2));
        t.sum_dim(&product, 5)
    };
    let masked = {
        let decay = t.unsqueeze(&t.permute(&decay, &[0, 2, 3, 4, 1]), 5);
        let product = t.mul(&t.unsqueeze(&weights, 5), &decay);
        t.sum_dim(&product, 5)
    };
    let out = {
        let product = t.mul(&t.unsqueeze(&masked, 5), &t.unsqueeze(x, 2));
        t.sum_dim(&product, 3)
    };
    (out, [decay, weights, masked])
}

/// State of each chunk, [batch, chunks, heads, width, state], the decay to its end, and the weights of its inputs.
fn chunk_states(t: &Tape, [x, b, sums]: [&Tensor; 3]) -> (Tensor, Tensor, Tensor) {
    let decay = {
        let gap = t.sub(&t.narrow(sums, 3, 1), sums);
        t.exp(&gap)
    };
    let weighted = t.mul(b, &t.unsqueeze(&t.permute(&decay, &[0, 2, 3, 1]), 4));
    let states = {
        let product = t.mul(&t.unsqueeze(&weighted, 4), &t.unsqueeze(x, 5));
        t.sum_dim(&product, 2)
    };
    (states, decay, weighted)
}

/// `segment_sum`: sums of all stretches of the last dimension, [.., n] → [.., n, n].
fn segment_sum(t: &Tape, x: Tensor) -> Tensor {
    let n = x.last();
    let lower = || {
        let ones = t.empty([n, n], DType::Bool, "ones");
        let lower = t.empty([n, n], DType::Bool, "tril");
        drop(ones);
        lower
    };
    let shape = x.shape().inserted(x.dim(), n);
    let wide = t.expand(&t.unsqueeze(&x, x.dim()), shape);
    drop(x);
    let mut mask = lower();
    let _input = {
        let above = t.empty_like(&mask, DType::Bool, "not");
        t.masked_fill(&wide, &above)
    };
    drop(wide);
    let sums = t.cumsum_last(&_input);
    mask = {
        let second = lower();
        drop(mask);
        second
    };
    let above = t.empty_like(&mask, DType::Bool, "not");
    t.masked_fill(&sums, &above)
}
