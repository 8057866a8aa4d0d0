//! Attention behind transformers' interface: `sdpa`, `eager` and `flash_attention_2`.

use crate::dtype::DType;
use crate::setup::Attention;
use crate::tape::{Mask, SdpaInputs, Tape, Tensor};

/// Arguments that an attention module passes to its implementation.
pub struct AttentionCall<'a> {
    /// [batch, heads, queries, width].
    pub q: &'a Tensor,
    /// [batch, kv heads, keys, width].
    pub k: &'a Tensor,
    /// [batch, kv heads, keys, width], which may be another width than that of queries and keys.
    pub v: &'a Tensor,
    /// Mask of the keys that count; `None` if there is none.
    pub mask: Option<&'a Mask>,
    /// Probability of dropout.
    pub dropout: f64,
    /// Type in which eager attention computes its softmax before casting back to that of the queries; `None` for
    /// `torch.softmax` without a `dtype`.
    pub softmax: Option<DType>,
}

/// Output [batch, queries, heads, width], and the weights that eager attention returns: the caller holds both as long
/// as Python does.
pub fn attention(t: &Tape, implementation: Attention, call: &AttentionCall<'_>) -> (Tensor, Option<Tensor>) {
    capped_attention(t, implementation, call, false)
}

/// [`attention`] with optional soft-capping of scores: eager attention caps in a step of its own, FlashAttention within
/// the kernel, SDPA not at all.
pub fn capped_attention(
    t: &Tape,
    implementation: Attention,
    call: &AttentionCall<'_>,
    softcap: bool,
) -> (Tensor, Option<Tensor>) {
    match implementation {
        Attention::Sdpa => (sdpa(t, call), None),
        Attention::Eager => eager(t, call, softcap),
        Attention::FlashAttention2 => (flash(t, call), None),
    }
}

/// `flash_attention_forward` of whole sequences. Values with narrower heads than queries are padded, and the output
/// is cut to their width. Inputs that are fp32 are cast ([`Tape::flash_dtype`]); temporaries of position ids are left out.
fn flash(t: &Tape, call: &AttentionCall<'_>) -> Tensor {
    let missing = call.q.last().saturating_sub(call.v.last());
    let padded = (missing > 0).then(|| {
        let rows = t.pad_end(&t.transpose(call.v, 1, 2), 3, missing);
        t.transpose(&rows, 1, 2)
    });
    let dtype = t.flash_dtype(call.q);
    let [q, k, v] = [call.q, call.k, padded.as_ref().unwrap_or(call.v)].map(|x| match dtype {
        Some(dtype) => t.to_dtype(x, dtype),
        None => x.clone(),
    });
    let out = t.flash_attention(&SdpaInputs {
        q: &q,
        k: &k,
        v: &v,
        mask: None,
        dropout: call.dropout,
        enable_gqa: true,
    });
    let out = t.transpose(&out, 1, 2);
    match padded {
        Some(_) => t.slice(&out, 3, call.v.last()),
        None => out,
    }
}

/// Longest heads that SDPA is asked to share keys and values for (`use_gqa_in_sdpa`).
const SHARED_WIDTH: u64 = 256;

/// `sdpa_attention_forward`.
fn sdpa(t: &Tape, call: &AttentionCall<'_>) -> Tensor {
    let shares = call.mask.is_none() && call.k.last() == call.v.last() && call.k.last() <= SHARED_WIDTH;
    let repeated = (!shares && call.q.size(1) != call.k.size(1)).then(|| {
        (
            repeat_kv(t, call.k, call.q.size(1)),
            repeat_kv(t, call.v, call.q.size(1)),
        )
    });
    let (k, v) = repeated.as_ref().map_or((call.k, call.v), |(k, v)| (k, v));
    let out = t.sdpa(&SdpaInputs {
        q: call.q,
        k,
        v,
        mask: call.mask,
        dropout: call.dropout,
        enable_gqa: shares,
    });
    let out = t.transpose(&out, 1, 2);
    t.contiguous(&out)
}

/// `eager_attention_forward` as in Llama.
fn eager(t: &Tape, call: &AttentionCall<'_>, softcap: bool) -> (Tensor, Option<Tensor>) {
    let k = repeat_kv(t, call.k, call.q.size(1));
    let v = repeat_kv(t, call.v, call.q.size(1));
    let mut weights = {
        let scores = t.matmul(call.q, &t.transpose(&k, 2, 3));
        t.scale(&scores)
    };
    if softcap {
        weights = soft_cap(t, weights);
    }
    if let Some(Mask::Bias(bias) | Mask::Bool(bias)) = call.mask {
        weights = t.add(&weights, bias);
    }
    weights = {
        let probabilities = t.softmax(&weights, call.softmax);
        match call.softmax {
            Some(_) => t.to_dtype(&probabilities, call.q.dtype()),
            None => probabilities,
        }
    };
    weights = t.functional_dropout(&weights, call.dropout);
    let out = t.matmul(&weights, &v);
    let out = {
        let transposed = t.transpose(&out, 1, 2);
        drop(out);
        t.contiguous(&transposed)
    };
    (out, Some(weights))
}

/// `cap * tanh(x / cap)`, of scores or logits.
pub fn soft_cap(t: &Tape, mut x: Tensor) -> Tensor {
    x = t.scale(&x);
    x = t.tanh(&x);
    t.scale(&x)
}

/// `repeat_kv`: each key and value head copied for the query heads that share it.
fn repeat_kv(t: &Tape, x: &Tensor, heads: u64) -> Tensor {
    let [batch, kv_heads, seq, width] = [x.size(0), x.size(1), x.size(2), x.size(3)];
    if kv_heads == heads {
        return x.clone();
    }
    let stretched = t.expand(&t.unsqueeze(x, 2), [batch, kv_heads, heads / kv_heads, seq, width]);
    t.reshape(&stretched, [batch, heads, seq, width])
}

/// Arguments of attention with sinks, which is eager.
pub struct SinkCall<'a> {
    /// [batch, heads, queries, width].
    pub q: &'a Tensor,
    /// [batch, kv heads, keys, width].
    pub k: &'a Tensor,
    /// [batch, kv heads, keys, width].
    pub v: &'a Tensor,
    /// Mask of the keys that count.
    pub mask: Option<&'a Mask>,
    /// A score of each head beside those of the keys, [heads].
    pub sinks: &'a Tensor,
    /// Probability of dropout.
    pub dropout: f64,
}

/// `eager_attention_forward` of gpt-oss: output [batch, queries, heads, width], and the weights.
pub fn sink_attention(t: &Tape, call: &SinkCall<'_>) -> (Tensor, Tensor) {
    let [batch, heads, queries] = [call.q.size(0), call.q.size(1), call.q.size(2)];
    let k = repeat_kv(t, call.k, heads);
    let v = repeat_kv(t, call.v, heads);
    let mut weights = {
        let scores = t.matmul(call.q, &t.transpose(&k, 2, 3));
        t.scale(&scores)
    };
    if let Some(Mask::Bias(bias) | Mask::Bool(bias)) = call.mask {
        weights = t.add(&weights, bias);
    }
    let sinks = t.view(call.sinks, [1, heads, 1, 1]);
    let sinks = t.expand(&sinks, [batch, heads, queries, 1]);
    let mut combined = t.cat(&[&weights, &sinks], 3);
    combined = {
        let most = t.max_last(&combined);
        t.sub(&combined, &most)
    };
    let probs = t.softmax(&combined, Some(combined.dtype()));
    let scores = t.narrow(&probs, 3, probs.last() - 1);
    weights = t.to_dtype(&t.functional_dropout(&scores, call.dropout), v.dtype());
    let out = t.matmul(&weights, &v);
    let out = {
        let transposed = t.transpose(&out, 1, 2);
        drop(out);
        t.contiguous(&transposed)
    };
    drop((combined, sinks));
    (out, weights)
}

/// `eager_attention_forward` of Granite with sliding windows, whose output a sink scales once the keys are weighed: output
/// [batch, queries, heads, width], and the weights.
pub fn sink_scaled_attention(t: &Tape, call: &SinkCall<'_>) -> (Tensor, Tensor) {
    let heads = call.q.size(1);
    let k = repeat_kv(t, call.k, heads);
    let v = repeat_kv(t, call.v, heads);
    let mut weights = {
        let scores = t.matmul(call.q, &t.transpose(&k, 2, 3));
        t.scale(&scores)
    };
    if let Some(Mask::Bias(bias) | Mask::Bool(bias)) = call.mask {
        weights = t.add(&weights, bias);
    }
    let sum = t.logsumexp(&weights);
    let scale = {
        let wide = {
            let difference = t.sub(&sum, &t.view(call.sinks, [1, heads, 1]));
            t.to_dtype(&difference, DType::F32)
        };
        t.sigmoid(&wide)
    };
    weights = {
        let wide = t.softmax(&weights, Some(DType::F32));
        t.to_dtype(&wide, call.q.dtype())
    };
    weights = t.functional_dropout(&weights, call.dropout);
    let mut out = t.matmul(&weights, &v);
    out = t.mul(&out, &t.to_dtype(&t.unsqueeze(&scale, 3), out.dtype()));
    out = t.contiguous(&t.transpose(&out, 1, 2));
    drop((sum, scale));
    (out, weights)
}

/// `eager_attention_forward` of MiMo-V2-Flash, whose scores are shifted by the greatest of each query, with `sinks` [heads]
/// beside those of the keys or without: output [batch, queries, heads, width], and the weights.
pub fn shifted_attention(t: &Tape, call: &AttentionCall<'_>, sinks: Option<&Tensor>) -> (Tensor, Tensor) {
    let [batch, heads, queries] = [call.q.size(0), call.q.size(1), call.q.size(2)];
    let k = repeat_kv(t, call.k, heads);
    let v = repeat_kv(t, call.v, heads);
    let mut weights = {
        let scores = t.matmul(call.q, &t.transpose(&k, 2, 3));
        t.scale(&scores)
    };
    if let Some(Mask::Bias(bias) | Mask::Bool(bias)) = call.mask {
        weights = t.add(&weights, bias);
    }
    if let Some(sinks) = sinks {
        let sinks = t.expand(&t.view(sinks, [1, heads, 1, 1]), [batch, heads, queries, 1]);
        weights = t.cat(&[&weights, &sinks], 3);
    }
    weights = {
        let most = t.max_last(&weights);
        t.sub(&weights, &most)
    };
    let mut probs = t.softmax(&weights, Some(weights.dtype()));
    if sinks.is_some() {
        probs = t.narrow(&probs, 3, probs.last() - 1);
    }
    weights = t.to_dtype(&t.functional_dropout(&probs, call.dropout), v.dtype());
    let out = t.matmul(&weights, &v);
    let out = {
        let transposed = t.transpose(&out, 1, 2);
        drop(out);
        t.contiguous(&transposed)
    };
    (out, weights)
}
