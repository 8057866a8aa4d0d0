//! Attention of Falcon.

use super::{FalconConfig, KeyHeads};
use crate::dtype::DType;
use crate::model::parts::alibi::merged;
use crate::nn::{self, Builder, KvCache, Linear};
use crate::setup::Attention;
use crate::tape::{Mask, Module, SdpaInputs, Tape, Tensor};

/// State that all blocks of one forward share.
pub(super) struct Shared {
    pub attn: Attention,
    /// [batch × heads, 1, seq], in a model with ALiBi.
    pub alibi: Option<Tensor>,
    pub mask: Option<Mask>,
    pub cos: Tensor,
    pub sin: Tensor,
    pub cache: Option<KvCache>,
    /// Passed to every block, so a checkpointed block keeps it.
    pub _position_ids: Tensor,
}

/// `FalconAttention`.
pub(super) struct SelfAttention {
    module: Module,
    query_key_value: Linear,
    dense: Linear,
    heads: u64,
    key_heads: KeyHeads,
    head_dim: u64,
    dropout: f64,
}

impl SelfAttention {
    pub fn new(b: &Builder, c: &FalconConfig) -> Self {
        let width = match c.key_heads {
            KeyHeads::Own => 3 * c.hidden,
            KeyHeads::One => c.hidden + 2 * c.head_dim(),
            KeyHeads::Groups(groups) => c.hidden + 2 * groups * c.head_dim(),
        };
        Self {
            module: b.module(),
            query_key_value: Linear::new(b, "query_key_value", c.hidden, width, c.bias),
            dense: Linear::new(b, "dense", c.hidden, c.hidden, c.bias),
            heads: c.heads,
            key_heads: c.key_heads,
            head_dim: c.head_dim(),
            dropout: c.attention_dropout,
        }
    }

    /// `_split_heads`: queries, keys and values, [batch, seq, heads, width] each.
    fn split(&self, t: &Tape, fused: &Tensor) -> [Tensor; 3] {
        let [batch, seq, width] = [fused.size(0), fused.size(1), self.head_dim];
        match self.key_heads {
            KeyHeads::Own => {
                let split = t.view(fused, [batch, seq, self.heads, 3, width]);
                [0, 1, 2].map(|_| t.select(&split, 3))
            }
            KeyHeads::One => {
                let split = t.view(fused, [batch, seq, self.heads + 2, width]);
                let q = t.narrow(&split, 2, self.heads);
                let k = t.index_one(&split, 2);
                let v = t.index_one(&split, 2);
                [q, k, v]
            }
            KeyHeads::Groups(groups) => {
                let of_group = self.heads / groups;
                let split = t.view(fused, [batch, seq, groups, of_group + 2, width]);
                let q = t.narrow(&split, 3, of_group);
                let whole = *q.shape();
                let [k, v] = {
                    let [k, v] = [0, 1].map(|_| t.index_one(&split, 3));
                    [t.expand(&k, whole), t.expand(&v, whole)]
                };
                let flat = [&q, &k, &v].map(|x| t.reshape(x, [batch, seq, self.heads, width]));
                drop((q, k, v));
                flat
            }
        }
    }

    /// Output [batch, seq, hidden], and the weights that eager attention returns.
    pub fn call(&self, t: &Tape, shared: &Shared, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let fused = self.query_key_value.call_apart(t, x);
            let split = self.split(t, &fused);
            let [mut q, mut k, mut v] = split.map(|x| t.transpose(&x, 1, 2));
            if shared.alibi.is_none() {
                let cos = t.unsqueeze(&shared.cos, 1);
                let sin = t.unsqueeze(&shared.sin, 1);
                [q, k] = [nn::apply_rotary(t, &q, &cos, &sin), nn::apply_rotary(t, &k, &cos, &sin)];
            }
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let (out, weights, _held) = match (shared.attn, &shared.alibi) {
                (Attention::Eager, None) => self.eager(t, [&q, &k, &v], shared, x.dtype()),
                (Attention::Eager, Some(alibi)) => self.eager_with_biases(t, [&q, &k, &v], (shared, alibi), x.dtype()),
                (_, alibi) => (self.sdpa(t, [&q, &k, &v], shared, alibi.is_some()), None, Vec::new()),
            };
            let projected = self.dense.call_apart(t, &out);
            drop((out, fused));
            (projected, weights)
        })
    }

    fn sdpa(&self, t: &Tape, [q, k, v]: [&Tensor; 3], shared: &Shared, drops: bool) -> Tensor {
        let out = t.sdpa(&SdpaInputs {
            q,
            k,
            v,
            mask: shared.mask.as_ref(),
            dropout: if drops { self.dropout } else { 0.0 },
            enable_gqa: false,
        });
        let [batch, seq] = [q.size(0), q.size(2)];
        t.reshape(&t.transpose(&out, 1, 2), [batch, seq, self.heads * self.head_dim])
    }

    /// Eager attention with rotary positions, whose softmax has the type `dtype` of the block's input.
    fn eager(
        &self,
        t: &Tape,
        [q, k, v]: [&Tensor; 3],
        shared: &Shared,
        dtype: DType,
    ) -> (Tensor, Option<Tensor>, Vec<Tensor>) {
        let scores = t.scale_(t.matmul(q, &t.transpose(k, 2, 3)));
        let weights = {
            let masked = added(t, &scores, shared.mask.as_ref());
            t.softmax(&masked, Some(dtype))
        };
        drop(scores);
        let out = t.matmul(&weights, v);
        let [batch, seq] = [q.size(0), q.size(2)];
        let out = t.reshape(
            &t.permute(&out, &[0, 2, 1, 3]),
            [batch, seq, self.heads * self.head_dim],
        );
        (out, Some(weights), Vec::new())
    }

    /// Eager attention with ALiBi, in fp32 until the softmax.
    fn eager_with_biases(
        &self,
        t: &Tape,
        [q, k, v]: [&Tensor; 3],
        (shared, alibi): (&Shared, &Tensor),
        dtype: DType,
    ) -> (Tensor, Option<Tensor>, Vec<Tensor>) {
        let [batch, seq, keys] = [q.size(0), q.size(2), k.size(2)];
        let product = t.matmul(q, &t.transpose(k, 2, 3));
        let scores = t.to_dtype(&product, DType::F32);
        let logits = t.scale_(t.add(&scores, &t.view(alibi, [batch, self.heads, 1, keys])));
        let mut weights = {
            let masked = added(t, &logits, shared.mask.as_ref());
            t.softmax(&masked, Some(dtype))
        };
        weights = t.dropout(&weights, self.dropout);
        let mut out = t.matmul(&weights, v);
        out = t.view(&out, [batch * self.heads, seq, self.head_dim]);
        out = merged(t, &out, self.heads);
        (out, Some(weights), vec![product, scores, logits])
    }
}

/// Scores with the mask added.
fn added(t: &Tape, scores: &Tensor, mask: Option<&Mask>) -> Tensor {
    match mask {
        Some(Mask::Bias(bias) | Mask::Bool(bias)) => t.add(scores, bias),
        None => scores.clone(),
    }
}
