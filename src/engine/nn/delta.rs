//! The gated delta rule in chunks of positions, as transformers runs it without flash-linear-attention
//! (`torch_chunk_gated_delta_rule` in `transformers/models/qwen3_5/modeling_qwen3_5.py`).

use crate::dtype::DType;
use crate::tape::{Tape, Tensor};

/// Positions of a chunk.
pub(super) const CHUNK: u64 = 64;

/// Arguments of the rule.
pub struct DeltaCall<'a> {
    /// Queries [batch, seq, heads, key width].
    pub query: &'a Tensor,
    /// Keys [batch, seq, heads, key width].
    pub key: &'a Tensor,
    /// Values [batch, seq, heads, value width].
    pub value: &'a Tensor,
    /// Decay in log space, `g`, [batch, seq, heads].
    pub decay: &'a Tensor,
    /// Learning rate of the state, [batch, seq, heads].
    pub beta: &'a Tensor,
    /// True if the last state is returned.
    pub returns_state: bool,
}

/// Inputs in fp32 and in chunks, with heads before positions.
struct Chunked {
    query: Tensor,
    key: Tensor,
    /// Values [batch, heads, positions, width], padded.
    _value: Tensor,
    _beta: Tensor,
    decay: Tensor,
    k_beta: Tensor,
    v_beta: Tensor,
    /// Chunks of a sample.
    chunks: u64,
}

/// Tensors that are computed within each chunk, before the scan over chunks.
struct Within {
    cum_decay: Tensor,
    intra_chunk_attn: Tensor,
    new_values: Tensor,
    k_cumdecay: Tensor,
    _mask: Tensor,
    _pairwise_decay: Tensor,
    _ut_system: Tensor,
    _decayed_k_beta: Tensor,
}

/// Outputs [batch, seq, heads, value width] in the queries' type, and the last state
/// [batch, heads, key width, value width].
pub fn chunk_gated_delta_rule(t: &Tape, call: &DeltaCall<'_>) -> (Tensor, Option<Tensor>) {
    let (dtype, seq) = (call.query.dtype(), call.query.size(1));
    let Chunked {
        mut query,
        mut key,
        k_beta,
        v_beta,
        chunks,
        _value,
        _beta,
        decay,
    } = chunked(t, call);
    let within = within_chunks(t, [&query, &key, &k_beta, &v_beta], &decay);
    let [batch, heads, value_width] = [v_beta.size(0), v_beta.size(1), v_beta.last()];
    let zeros = t.empty([batch, heads, key.last(), value_width], DType::F32, "state");
    let mut out = t.empty_like(&within.new_values, DType::F32, "zeros_like");
    let cum_decay = &within.cum_decay;
    query = t.mul(&query, &t.unsqueeze(&t.exp(cum_decay), 4));
    let rest = {
        let gap = t.sub(&t.narrow(cum_decay, 3, 1), cum_decay);
        t.exp(&gap)
    };
    key = t.mul(&key, &t.unsqueeze(&rest, 4));
    drop(rest);
    let chunk_decay = {
        let last = t.exp(&t.select(cum_decay, 3));
        t.unsqueeze(&t.unsqueeze(&last, 3), 4)
    };
    let mut state = zeros;
    let mut _kept: [Option<Tensor>; 2] = [None, None];
    for _chunk in 0..chunks {
        let v_new = {
            let values = t.select(&within.new_values, 2);
            let seen = t.matmul(&t.select(&within.k_cumdecay, 2), &state);
            t.sub(&values, &seen)
        };
        _kept[0] = Some(v_new.clone());
        let inter = t.matmul(&t.select(&query, 2), &state);
        _kept[1] = Some(inter.clone());
        let sum = {
            let intra = t.matmul(&t.select(&within.intra_chunk_attn, 2), &v_new);
            t.add(&inter, &intra)
        };
        out = t.set_selected(out, 2, &sum);
        drop(sum);
        state = {
            let decayed = t.mul(&state, &t.select(&chunk_decay, 2));
            let update = t.matmul(&t.transpose(&t.select(&key, 2), 2, 3), &v_new);
            t.add(&decayed, &update)
        };
    }
    let state = call.returns_state.then_some(state);
    out = t.reshape(&out, [batch, heads, chunks * CHUNK, value_width]);
    out = t.slice(&out, 2, seq);
    out = t.to_contiguous(&t.transpose(&out, 1, 2), dtype);
    (out, state)
}

/// Casts and pads the inputs, normalises queries and keys, and splits positions into chunks.
fn chunked(t: &Tape, call: &DeltaCall<'_>) -> Chunked {
    let by_head = |x: &Tensor| t.to_contiguous(&t.transpose(x, 1, 2), DType::F32);
    let [mut query, mut key, value] = [call.query, call.key, call.value].map(by_head);
    let [beta, decay] = [call.beta, call.decay].map(by_head);
    query = l2norm(t, &query);
    key = l2norm(t, &key);
    query = t.scale(&query);
    let seq = query.size(2);
    let missing = (CHUNK - seq % CHUNK) % CHUNK;
    let padded = |x: &Tensor| t.pad_end(x, 2, missing);
    let [query, key, value] = {
        let whole = [&query, &key, &value].map(padded);
        drop((query, key, value));
        whole
    };
    let [beta, decay] = {
        let whole = [&beta, &decay].map(padded);
        drop((beta, decay));
        whole
    };
    let chunks = query.size(2) / CHUNK;
    let v_beta = t.mul(&value, &t.unsqueeze(&beta, 3));
    let k_beta = t.mul(&key, &t.unsqueeze(&beta, 3));
    let split = |x: &Tensor| t.reshape(x, [x.size(0), x.size(1), chunks, CHUNK, x.size(3)]);
    let [query, key, k_beta, v_beta] = [&query, &key, &k_beta, &v_beta].map(split);
    Chunked {
        query,
        key,
        k_beta,
        v_beta,
        _value: value,
        decay: t.reshape(&decay, [beta.size(0), beta.size(1), chunks, CHUNK]),
        _beta: beta,
        chunks,
    }
}

/// The first phase: decays between positions of a chunk, attention within it, and the solution of its UT system.
fn within_chunks(t: &Tape, [query, key, k_beta, v_beta]: [&Tensor; 4], decay: &Tensor) -> Within {
    let mask = {
        let ones = t.empty([CHUNK, CHUNK], DType::Bool, "ones");
        let upper = t.empty([CHUNK, CHUNK], DType::Bool, "triu");
        drop(ones);
        upper
    };
    let cum_decay = t.cumsum_last(decay);
    let mut pairwise_decay = t.sub(&t.unsqueeze(&cum_decay, 4), &t.unsqueeze(&cum_decay, 3));
    pairwise_decay = t.masked_fill(&pairwise_decay, &mask);
    pairwise_decay = t.exp(&pairwise_decay);
    let decayed = |left: &Tensor| {
        let product = t.matmul(left, &t.transpose(key, 3, 4));
        t.mul(&product, &pairwise_decay)
    };
    let ut_system = decayed(k_beta);
    let intra_chunk_attn = decayed(query);
    let decayed_k_beta = t.mul(k_beta, &t.unsqueeze(&t.exp(&cum_decay), 4));
    let new_values = t.solve_unit_triangular(&ut_system, v_beta);
    let k_cumdecay = t.solve_unit_triangular(&ut_system, &decayed_k_beta);
    Within {
        cum_decay,
        intra_chunk_attn,
        new_values,
        k_cumdecay,
        _mask: mask,
        _pairwise_decay: pairwise_decay,
        _ut_system: ut_system,
        _decayed_k_beta: decayed_k_beta,
    }
}

/// `x * torch.rsqrt((x * x).sum(dim=-1, keepdim=True) + eps)`.
fn l2norm(t: &Tape, x: &Tensor) -> Tensor {
    let sum = {
        let squares = t.mul(x, x);
        t.sum_last(&squares)
    };
    let shifted = t.shift(&sum);
    drop(sum);
    let inverse = t.rsqrt(&shifted);
    drop(shifted);
    t.mul(x, &inverse)
}
