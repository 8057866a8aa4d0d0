//! Embeddings, blocks and last norm of BLOOM.

use std::rc::Rc;

use super::BloomConfig;
use crate::dtype::DType;
use crate::model::forward::Run;
use crate::model::parts::alibi::{linear_biases, merged};
use crate::model::parts::text::{Outputs, Stack, run_blocks_with_weights};
use crate::nn::{self, Builder, Embedding, KvCache, LayerNorm, Linear, Numbered};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// `BloomModel`.
pub(super) struct BloomStack {
    word_embeddings: Embedding,
    word_embeddings_layernorm: LayerNorm,
    h: Vec<Numbered<Block>>,
    ln_f: LayerNorm,
    heads: u64,
}

/// `BloomBlock`.
struct Block {
    input_layernorm: LayerNorm,
    self_attention: SelfAttention,
    post_attention_layernorm: LayerNorm,
    mlp: Mlp,
    adds_to_normed: bool,
}

struct SelfAttention {
    module: Module,
    query_key_value: Linear,
    dense: Linear,
    heads: u64,
    hidden_dropout: f64,
    attention_dropout: f64,
}

struct Mlp {
    module: Module,
    dense_h_to_4h: Linear,
    dense_4h_to_h: Linear,
    dropout: f64,
}

/// State that all blocks of one forward share.
struct Shared {
    alibi: Tensor,
    mask: Option<Mask>,
    cache: Option<KvCache>,
}

impl BloomStack {
    pub fn new(b: &Builder, c: &BloomConfig) -> Self {
        Self {
            word_embeddings: Embedding::new(b, "word_embeddings", c.vocab, c.hidden),
            word_embeddings_layernorm: LayerNorm::new(b, "word_embeddings_layernorm", c.hidden),
            h: (0..c.layers as usize)
                .map(|i| Numbered::new(b, "h", i, || Rc::new(Block::new(b, c))))
                .collect(),
            ln_f: LayerNorm::new(b, "ln_f", c.hidden),
            heads: c.heads,
        }
    }
}

impl Stack for BloomStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let embeds = self
            .word_embeddings
            .call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let cache = run.cache(&[]);
        let h = self.word_embeddings_layernorm.call(t, &embeds);
        let alibi = linear_biases(t, ids, self.heads, false, h.dtype());
        let mask = nn::causal_mask(t, Attention::Eager, &embeds);
        let shared = Rc::new(Shared { alibi, mask, cache });
        let (last, held) = run_blocks_with_weights(t, run, (&self.h, &shared), h, Block::forward);
        let out = self.ln_f.call(t, &last);
        drop((held, shared, embeds));
        out
    }

    fn table(&self) -> &Tensor {
        self.word_embeddings.weight()
    }
}

impl Block {
    fn new(b: &Builder, c: &BloomConfig) -> Self {
        let t = b.tape();
        Self {
            input_layernorm: LayerNorm::new(b, "input_layernorm", c.hidden),
            self_attention: t.scope("self_attention", || SelfAttention {
                module: b.module(),
                query_key_value: Linear::new(b, "query_key_value", c.hidden, 3 * c.hidden, true),
                dense: Linear::new(b, "dense", c.hidden, c.hidden, true),
                heads: c.heads,
                hidden_dropout: c.hidden_dropout,
                attention_dropout: c.attention_dropout,
            }),
            post_attention_layernorm: LayerNorm::new(b, "post_attention_layernorm", c.hidden),
            mlp: t.scope("mlp", || Mlp {
                module: b.module(),
                dense_h_to_4h: Linear::new(b, "dense_h_to_4h", c.hidden, 4 * c.hidden, true),
                dense_4h_to_h: Linear::new(b, "dense_4h_to_h", 4 * c.hidden, c.hidden, true),
                dropout: c.hidden_dropout,
            }),
            adds_to_normed: c.adds_to_normed,
        }
    }

    fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Outputs {
        let mut normed = self.input_layernorm.call(t, &x);
        let mut residual = if self.adds_to_normed { normed.clone() } else { x };
        let (attended, weights) = self.self_attention.call(t, shared, &normed, &residual);
        normed = self.post_attention_layernorm.call(t, &attended);
        residual = if self.adds_to_normed {
            normed.clone()
        } else {
            attended.clone()
        };
        let out = self.mlp.call(t, &normed, &residual);
        drop((normed, residual, attended));
        (out, Some(weights))
    }
}

impl SelfAttention {
    /// `_reshape`: queries, keys and values, [batch, heads, seq, width] each.
    fn split(&self, t: &Tape, fused: &Tensor) -> [Tensor; 3] {
        let [batch, seq, width] = [fused.size(0), fused.size(1), fused.last() / (3 * self.heads)];
        let split = t.view(fused, [batch, seq, self.heads, 3, width]);
        [0, 1, 2].map(|_| t.transpose(&t.select(&split, 3), 1, 2))
    }

    /// Output [batch, seq, hidden] with the residual stream, and the weights.
    fn call(&self, t: &Tape, shared: &Shared, x: &Tensor, residual: &Tensor) -> (Tensor, Tensor) {
        self.module.call(t, move || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let fused = self.query_key_value.call(t, x);
            let [mut q, mut k, mut v] = self.split(t, &fused);
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let flat = |x: &Tensor| t.reshape(x, [batch * self.heads, x.size(2), hidden / self.heads]);
            q = flat(&q);
            k = t.transpose(&flat(&k), 1, 2);
            v = flat(&v);
            let scores = {
                let [k, q, alibi] = [&k, &q, &shared.alibi].map(|x| t.cast_low(x));
                t.scaled_baddbmm(&alibi, &q, &k)
            };
            let mut masked = t.view(&scores, [batch, self.heads, seq, k.last()]);
            if let Some(Mask::Bias(bias) | Mask::Bool(bias)) = &shared.mask {
                masked = t.add(&masked, bias);
            }
            let mut weights = {
                let probabilities = t.softmax(&masked, Some(DType::F32));
                t.to_dtype(&probabilities, q.dtype())
            };
            weights = t.dropout(&weights, self.attention_dropout);
            let mut out = t.bmm(&t.view(&weights, [batch * self.heads, seq, k.last()]), &v);
            out = merged(t, &out, self.heads);
            let projected = self.dense.call(t, &out);
            let sum = {
                let dropped = t.dropout(&projected, self.hidden_dropout);
                t.add(residual, &dropped)
            };
            drop((projected, out, masked, scores));
            (sum, weights)
        })
    }
}

impl Mlp {
    fn call(&self, t: &Tape, x: &Tensor, residual: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let h = {
                let up = self.dense_h_to_4h.call(t, x);
                t.scope("gelu_impl", || t.bloom_gelu(&up))
            };
            let projected = self.dense_4h_to_h.call(t, &h);
            let dropped = t.dropout(&projected, self.dropout);
            let out = t.add(residual, &dropped);
            drop((projected, dropped, h));
            out
        })
    }
}
