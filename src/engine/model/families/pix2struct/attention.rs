//! Attention of Pix2Struct's tower and decoder (`Pix2StructVisionAttention`, `Pix2StructTextAttention`).

use super::bias::relative_bias;
use crate::dtype::DType;
use crate::nn::{self, AttentionCall, Builder, Embedding, KvCache, Linear};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// Sizes of an attention.
#[derive(Clone, Copy)]
pub(super) struct AttentionSizes {
    /// Width of the residual stream.
    pub hidden: u64,
    pub heads: u64,
    pub head_width: u64,
    /// Dropout of attention probabilities.
    pub dropout: f64,
    /// Entries of a table of relative positions, if there is one.
    pub buckets: Option<u64>,
}

/// What all blocks of a decoder share.
pub(super) struct Shared {
    pub attn: Attention,
    /// Mask of eager attention to the text; SDPA makes one of the bias.
    pub mask: Option<Mask>,
    pub cache: Option<KvCache>,
}

/// Projections, and a table of relative positions in the decoder's first block.
pub(super) struct SelfAttention {
    module: Module,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    relative_attention_bias: Option<Embedding>,
    sizes: AttentionSizes,
}

impl SelfAttention {
    pub fn new(b: &Builder, c: AttentionSizes) -> Self {
        let inner = c.heads * c.head_width;
        let into = |name| Linear::new(b, name, c.hidden, inner, false);
        Self {
            module: b.module(),
            query: into("query"),
            key: into("key"),
            value: into("value"),
            output: Linear::new(b, "output", inner, c.hidden, false),
            relative_attention_bias: c
                .buckets
                .map(|buckets| Embedding::new(b, "relative_attention_bias", buckets, c.heads)),
            sizes: c,
        }
    }

    /// The tower's attention, without positions: output [batch, positions, hidden], and the weights.
    pub fn call_plain(&self, t: &Tape, attn: Attention, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, || {
            let [q, k, v] = self.project(t, x, x);
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: None,
                dropout: self.sizes.dropout,
                softmax: None,
            };
            let (out, weights) = nn::attention(t, attn, &call);
            (self.back(t, out), weights)
        })
    }

    /// The decoder's attention to its own text, or to what the tower made: output [batch, seq, hidden], the bias of positions,
    /// which the first block makes for all, and the weights.
    pub fn call(
        &self,
        t: &Tape,
        shared: &Shared,
        (x, across): (&Tensor, Option<&Tensor>),
        bias: Option<Tensor>,
    ) -> (Tensor, Tensor, Option<Tensor>) {
        self.module.call(t, || {
            let [q, mut k, mut v] = self.project(t, x, across.unwrap_or(x));
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let extents = [q.size(2), k.size(2)];
            let bias = bias.unwrap_or_else(|| match &self.relative_attention_bias {
                Some(table) => relative_bias(t, table, extents),
                None => t.empty([1, self.sizes.heads, extents[0], extents[1]], q.dtype(), "zeros"),
            });
            let is_causal = across.is_none();
            let (out, weights) = match shared.attn {
                Attention::Eager => {
                    let mask = shared.mask.as_ref().filter(|_| is_causal);
                    let (out, weights) = self.eager(t, [&q, &k, &v], &bias, mask);
                    (out, Some(weights))
                }
                _ => (self.sdpa(t, [&q, &k, &v], &bias, is_causal), None),
            };
            let out = self.back(t, out);
            drop((q, k, v));
            (out, bias, weights)
        })
    }

    fn project(&self, t: &Tape, x: &Tensor, context: &Tensor) -> [Tensor; 3] {
        let split = |x: Tensor| {
            let by_head = t.view(&x, [x.size(0), x.size(1), self.sizes.heads, self.sizes.head_width]);
            t.transpose(&by_head, 1, 2)
        };
        let q = split(self.query.call(t, x));
        let k = split(self.key.call(t, context));
        [q, k, split(self.value.call(t, context))]
    }

    /// [batch, seq, heads, width] → [batch, seq, hidden].
    fn back(&self, t: &Tape, out: Tensor) -> Tensor {
        let joined = t.reshape(
            &out,
            [out.size(0), out.size(1), self.sizes.heads * self.sizes.head_width],
        );
        drop(out);
        self.output.call(t, &joined)
    }

    /// `sdpa_attention_forward` with `position_bias`, which becomes the mask (`create_position_bias_mask`).
    fn sdpa(&self, t: &Tape, [q, k, v]: [&Tensor; 3], bias: &Tensor, is_causal: bool) -> Tensor {
        let mask = match is_causal {
            true => {
                let (queries, keys) = (q.size(2), k.size(2));
                let allowed = {
                    let arange = |n, name| nn::ids(t, &[n], name);
                    let (rows, columns) = (arange(queries, "arange"), arange(keys, "arange"));
                    let allowed = t.empty([queries, keys], DType::Bool, "comparison");
                    drop((rows, columns));
                    t.view(&allowed, [1, 1, queries, keys])
                };
                t.where_or_lowest(&allowed, bias)
            }
            false => bias.clone(),
        };
        let mask = Mask::Bias(mask);
        let call = AttentionCall {
            q,
            k,
            v,
            mask: Some(&mask),
            dropout: self.sizes.dropout,
            softmax: None,
        };
        nn::attention(t, Attention::Sdpa, &call).0
    }

    /// `eager_attention_forward`: output [batch, seq, heads, width] and the weights.
    fn eager(&self, t: &Tape, [q, k, v]: [&Tensor; 3], bias: &Tensor, mask: Option<&Mask>) -> (Tensor, Tensor) {
        let mut weights = {
            let scores = t.matmul(q, &t.transpose(k, 2, 3));
            t.scale(&scores)
        };
        weights = t.add(&weights, bias);
        if let Some(Mask::Bias(mask) | Mask::Bool(mask)) = mask {
            weights = t.add(&weights, mask);
        }
        weights = t.softmax(&weights, None);
        weights = t.functional_dropout(&weights, self.sizes.dropout);
        let out = t.matmul(&weights, v);
        let out = {
            let transposed = t.transpose(&out, 1, 2);
            drop(out);
            t.contiguous(&transposed)
        };
        (out, weights)
    }
}
