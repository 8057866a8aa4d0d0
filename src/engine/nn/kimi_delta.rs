//! Kimi's delta attention in chunks of positions, as transformers runs it without flash-linear-attention
//! (`chunk_kimi_delta_attention` in `transformers/models/kimi_linear/modeling_kimi_linear.py`).

use super::delta::{CHUNK, DeltaCall};
use crate::dtype::DType;
use crate::tape::{Tape, Tensor};

/// Inputs in fp32 and in chunks, [batch, heads, chunks, positions, width], and what is computed of them within each chunk.
struct Chunks {
    query: Tensor,
    key: Tensor,
    /// Running sums of the decay.
    sums: Tensor,
    /// Decays between the positions of a chunk, [batch, heads, chunks, positions, positions, width].
    decays: Tensor,
    values: Tensor,
    k_cumdecay: Tensor,
    /// Mask that a variable holds until the loop over chunks makes its own.
    mask: Tensor,
    /// Variables that live until the function returns.
    _held: Vec<Tensor>,
}

/// Outputs [batch, seq, heads, width] in the queries' type, and the last state [batch, heads, width, width]. The decay is
/// that of each element of a key, [batch, seq, heads, width].
pub fn chunk_kimi_delta_attention(t: &Tape, call: &DeltaCall<'_>) -> (Tensor, Option<Tensor>) {
    let (dtype, seq) = (call.query.dtype(), call.query.size(1));
    let mut within = within_chunks(t, call);
    let values = &within.values;
    let [batch, heads, chunks] = [0, 1, 2].map(|dim| values.size(dim));
    let mut state = t.empty(
        [batch, heads, within.key.last(), values.last()],
        values.dtype(),
        "state",
    );
    let mut out = t.empty_like(values, values.dtype(), "zeros_like");
    within.mask = upper(t);
    // Variables hold what a chunk was made of until the next chunk's is made.
    let mut _kept = [None, None, None, None];
    for _chunk in 0..chunks {
        let [q, k, v, g] = [&within.query, &within.key, values, &within.sums].map(|x| t.select(x, 2));
        let inter = {
            let decayed = t.mul(&q, &t.exp(&g));
            t.matmul(&decayed, &state)
        };
        _kept[0] = Some(inter.clone());
        let intra = {
            let decays = || t.select(&within.decays, 2);
            decayed_products(t, [&t.unsqueeze(&q, 3), &t.unsqueeze(&k, 2)], decays, &within.mask)
        };
        _kept[1] = Some(intra.clone());
        let seen = t.matmul(&t.select(&within.k_cumdecay, 2), &state);
        _kept[2] = Some(seen.clone());
        let new = t.sub(&v, &seen);
        _kept[3] = Some(new.clone());
        let sum = t.add(&inter, &t.matmul(&intra, &new));
        out = t.set_selected(out, 2, &sum);
        drop(sum);
        state = {
            let decayed = t.mul(&state, &t.unsqueeze(&t.exp(&t.select(&g, 2)), 3));
            let written = {
                let rest = {
                    let gap = t.sub(&t.narrow(&g, 2, 1), &g);
                    t.exp(&gap)
                };
                let keys = t.mul(&k, &rest);
                drop(rest);
                t.matmul(&t.transpose(&keys, 2, 3), &new)
            };
            t.add(&decayed, &written)
        };
    }
    let state = call.returns_state.then_some(state);
    out = t.reshape(&out, [batch, heads, chunks * CHUNK, values.last()]);
    out = t.slice(&out, 2, seq);
    out = {
        let dense = t.contiguous(&t.transpose(&out, 1, 2));
        t.to_dtype(&dense, dtype)
    };
    (out, state)
}

/// Casts and pads the inputs, normalises queries and keys, splits positions into chunks, and computes what is of a chunk alone.
fn within_chunks(t: &Tape, call: &DeltaCall<'_>) -> Chunks {
    let by_head = |x: &Tensor| {
        let dense = t.contiguous(&t.transpose(x, 1, 2));
        t.to_dtype(&dense, DType::F32)
    };
    let [mut query, mut key, mut value] = [call.query, call.key, call.value].map(by_head);
    let [mut beta, mut sums] = [call.beta, call.decay].map(by_head);
    query = l2norm(t, &query);
    key = l2norm(t, &key);
    let missing = (CHUNK - query.size(2) % CHUNK) % CHUNK;
    query = {
        let padded = t.pad_end(&query, 2, missing);
        t.scale(&padded)
    };
    key = t.pad_end(&key, 2, missing);
    value = t.pad_end(&value, 2, missing);
    sums = t.pad_end(&sums, 2, missing);
    beta = t.pad_end(&beta, 2, missing);
    let v_beta = t.mul(&value, &t.unsqueeze(&beta, 3));
    let k_beta = t.mul(&key, &t.unsqueeze(&beta, 3));
    let chunks = query.size(2) / CHUNK;
    let split = |x: &Tensor| t.reshape(x, [x.size(0), x.size(1), chunks, CHUNK, x.size(3)]);
    let [query, key, k_beta, v_beta] = [&query, &key, &k_beta, &v_beta].map(split);
    sums = split(&sums);
    sums = t.cumsum_rows(&sums);
    let [mask, strict_mask] = [0, 1].map(|_| upper(t));
    let decays = {
        let gap = t.sub(&t.unsqueeze(&sums, 4), &t.unsqueeze(&sums, 3));
        let filled = t.masked_fill(&gap, &t.unsqueeze(&strict_mask, 2));
        drop(gap);
        t.exp(&filled)
    };
    let products = {
        let [k_beta, key] = [t.unsqueeze(&k_beta, 4), t.unsqueeze(&key, 3)];
        let products = decayed_products(t, [&k_beta, &key], || decays.clone(), &mask);
        t.neg(&products)
    };
    let (mut attn, rows) = solve_rows(t, products);
    attn = {
        let eye = t.empty([CHUNK, CHUNK], DType::F32, "eye");
        t.add(&attn, &eye)
    };
    let values = t.matmul(&attn, &v_beta);
    drop(value);
    let k_cumdecay = {
        let decayed = t.mul(&k_beta, &t.exp(&sums));
        t.matmul(&attn, &decayed)
    };
    let mut held = vec![beta, strict_mask, attn, k_beta, v_beta];
    held.extend(rows);
    Chunks {
        query,
        key,
        sums,
        decays,
        values,
        k_cumdecay,
        mask,
        _held: held,
    }
}

/// Solves what the positions of a chunk write over each other, row by row: of the products [batch, heads, chunks, positions,
/// positions] the same, and what variables hold of the last row until the function that has them returns.
fn solve_rows(t: &Tape, mut attn: Tensor) -> (Tensor, Vec<Tensor>) {
    let [batch, heads, chunks] = [0, 1, 2].map(|dim| attn.size(dim));
    // Variables hold what a row was made of until the next row's is made.
    let (mut _row, mut _before) = (None, None);
    for place in 1..CHUNK {
        let row = t.clone_of(&t.narrow(&t.select(&attn, 3), 3, place));
        _row = Some(row.clone());
        let before = t.clone_of(&t.narrow(&t.narrow(&attn, 3, place), 4, place));
        _before = Some(before.clone());
        let solved = {
            let sum = {
                let products = t.mul(&t.unsqueeze(&row, 4), &before);
                t.sum_dim(&products, 3)
            };
            t.add(&row, &sum)
        };
        attn = t.set_view(attn, [batch, heads, chunks, place], &solved);
    }
    (attn, [_row, _before].into_iter().flatten().collect())
}

/// `(left * right * decays).sum(dim=-1).masked_fill(mask, 0)`; decays are taken after the first product, so that backward
/// comes to them before it.
fn decayed_products(t: &Tape, [left, right]: [&Tensor; 2], decays: impl FnOnce() -> Tensor, mask: &Tensor) -> Tensor {
    let sum = {
        let products = {
            let products = t.mul(left, right);
            t.mul(&products, &decays())
        };
        t.sum_dim(&products, products.dim() - 1)
    };
    t.masked_fill(&sum, mask)
}

/// `torch.triu(torch.ones(…))`.
fn upper(t: &Tape) -> Tensor {
    let ones = t.empty([CHUNK, CHUNK], DType::Bool, "ones");
    let upper = t.empty([CHUNK, CHUNK], DType::Bool, "triu");
    drop(ones);
    upper
}

/// `x / torch.sqrt((x * x).sum(dim=-1, keepdim=True) + eps)`.
fn l2norm(t: &Tape, x: &Tensor) -> Tensor {
    let norm = {
        let shifted = {
            let sum = {
                let squares = t.mul(x, x);
                t.sum_last(&squares)
            };
            t.shift(&sum)
        };
        t.sqrt(&shifted)
    };
    t.div(x, &norm)
}
