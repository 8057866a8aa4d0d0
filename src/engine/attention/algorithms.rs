//! Attention algorithms as programs on the tape, whose variables live as long as Python's do.

use smallvec::smallvec;

use super::call::{Algorithm, Call, Pass};
use super::sparse;
use crate::tape::work::HostOp;
use crate::tape::{Component, SdpaBackend, SdpaInputs, Tape, Tensor};

/// Queries, keys and values: [batch, heads, length, width], keys and values with their own heads.
pub(super) fn inputs(t: &Tape, call: &Call, length: u64) -> [Tensor; 3] {
    let make = |heads, name| {
        let x = t.empty([call.batch, heads, length, call.width], call.dtype, name);
        if call.pass == Pass::Training {
            t.require_grad(&x)
        } else {
            x
        }
    };
    [
        make(call.heads, "queries"),
        make(call.kv_heads, "keys"),
        make(call.kv_heads, "values"),
    ]
}

/// Runs once, as a benchmark does: forward, and `out.sum().backward()` when training.
pub(super) fn once(t: &Tape, call: &Call, algorithm: Algorithm, inputs: &[Tensor; 3]) {
    let out = attend(t, call, algorithm, inputs);
    if call.pass == Pass::Training {
        let loss = t.scope("sum", || sum(t, &out));
        t.backward(&loss);
        inputs.iter().for_each(Tensor::clear_grad);
    }
}

fn attend(t: &Tape, call: &Call, algorithm: Algorithm, [q, k, v]: &[Tensor; 3]) -> Tensor {
    let fused = |backend, k: &Tensor, v: &Tensor| {
        let inputs = SdpaInputs {
            q,
            k,
            v,
            mask: None,
            dropout: 0.0,
            enable_gqa: true,
        };
        // A fused kernel without a mask is assumed causal within a language model.
        let part = if call.causal {
            Component::LanguageModel
        } else {
            Component::Run
        };
        t.host_op(HostOp::Choose);
        t.component("attention", part, || t.sdpa_with(backend, &inputs))
    };
    match algorithm {
        Algorithm::Flash => return fused(SdpaBackend::Flash, k, v),
        Algorithm::Cudnn => return fused(SdpaBackend::Cudnn, k, v),
        _ => {}
    }
    let (k, v) = &t.scope("repeat", || (repeat(t, k, call.heads), repeat(t, v, call.heads)));
    match algorithm {
        Algorithm::Efficient => fused(SdpaBackend::Efficient, k, v),
        Algorithm::TopK => top_k(t, call, [q, k, v]),
        Algorithm::Sliding | Algorithm::Chunked => in_blocks(t, call, algorithm, [q, k, v]),
        _ => standard(t, call.causal, [q, k, v]),
    }
}

/// Scores over √width, softmax, product with the values.
fn standard(t: &Tape, causal: bool, [q, k, v]: [&Tensor; 3]) -> Tensor {
    let scores = masked_scores(t, causal, q, k);
    let weights = t.scope("softmax", || t.softmax(&scores, None));
    t.scope("product", || t.matmul(&weights, v))
}

fn masked_scores(t: &Tape, causal: bool, q: &Tensor, k: &Tensor) -> Tensor {
    let scores = t.scope("scores", || {
        let products = t.matmul(q, &t.transpose(k, 2, 3));
        t.scale(&products)
    });
    if !causal {
        return scores;
    }
    t.scope("mask", || {
        // triu(full((queries, keys), -inf), 1)
        let full = t.empty([q.size(2), k.size(2)], q.dtype(), "full");
        let mask = t.empty([q.size(2), k.size(2)], q.dtype(), "triu");
        drop(full);
        t.add(&scores, &mask)
    })
}

/// Attention over the top-k scores. They are scattered into a full matrix of −∞, so this saves no memory.
fn top_k(t: &Tape, call: &Call, [q, k, v]: [&Tensor; 3]) -> Tensor {
    let scores = masked_scores(t, call.causal, q, k);
    let (values, indices) = t.scope("top-k", || sparse::top_k(t, &scores, call.kept(k.size(2))));
    let kept = t.scope("scatter", || {
        let nothing = t.empty_like(&scores, scores.dtype(), "full of −∞");
        sparse::scatter(t, &nothing, &indices, &values)
    });
    let weights = t.scope("softmax", || t.softmax(&kept, None));
    t.scope("product", || t.matmul(&weights, v))
}

fn in_blocks(t: &Tape, call: &Call, algorithm: Algorithm, [q, k, v]: [&Tensor; 3]) -> Tensor {
    let sees_all = algorithm == Algorithm::Chunked && !call.causal;
    let mut parts = Vec::new();
    for [queries, keys] in call.blocks(algorithm, q.size(2)) {
        // Chunks without a mask see all keys, so nothing is sliced.
        let of_keys = |x: &Tensor| if sees_all { x.clone() } else { rows(t, x, keys) };
        let [q, k, v] = t.scope("slice", || [rows(t, q, queries), of_keys(k), of_keys(v)]);
        parts.push(standard(t, call.causal, [&q, &k, &v]));
    }
    let all: Vec<&Tensor> = parts.iter().collect();
    t.scope("cat", || t.cat(&all, 2))
}

/// `x[:, :, a:b]`, `len` long. If that is all of `x`, Python gives an alias whose gradient has a node of its own
/// (`THPVariable_getitem` in `torch/csrc/autograd/python_variable_indexing.cpp`).
fn rows(t: &Tape, x: &Tensor, len: u64) -> Tensor {
    if x.size(2) != len {
        return t.slice(x, 2, len);
    }
    let rec = t.record("AliasBackward0", &[x]);
    rec.finish(t, x.detach(), |_, bw| smallvec![Some(bw.grad().clone())])
}

/// `repeat_kv`: keys and values copied for the query heads that share them.
fn repeat(t: &Tape, x: &Tensor, heads: u64) -> Tensor {
    let [batch, kv_heads, length, width] = [x.size(0), x.size(1), x.size(2), x.size(3)];
    if kv_heads == heads {
        return x.clone();
    }
    let stretched = t.expand(&t.unsqueeze(x, 2), [batch, kv_heads, heads / kv_heads, length, width]);
    t.reshape(&stretched, [batch, heads, length, width])
}

/// `x.sum()`; backward expands one number without a copy.
fn sum(t: &Tape, x: &Tensor) -> Tensor {
    let rec = t.record("SumBackward0", &[x]);
    let out = t.reduce_all(x, "sum");
    let shape = *x.shape();
    rec.finish(t, out.detach(), move |t, bw| {
        smallvec![Some(t.expand(bw.grad(), shape))]
    })
}
