//! A block: attention whose queries come from experts, and experts in place of an MLP.

use super::JetMoeConfig;
use super::experts::{Experts, Routes};
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::decoder::block::BlockContext;
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// `JetMoeDecoderLayer`.
pub(super) struct Block {
    mlp: Moe,
    input_norm: RmsNorm,
    second_norm: RmsNorm,
    attention: SelfAttention,
}

/// `JetMoeMoE`.
struct Moe {
    module: Module,
    experts: Experts,
    activation: Activation,
}

/// `JetMoeAttention`, with its `JetMoeMoA`.
struct SelfAttention {
    module: Module,
    experts: Experts,
    kv_proj: Linear,
    chosen: u64,
    head_dim: u64,
    dropout: f64,
}

impl Block {
    /// Makes a block.
    pub fn new(b: &Builder, c: &JetMoeConfig) -> Self {
        let t = b.tape();
        let mlp = t.scope("mlp", || Moe {
            module: b.module(),
            experts: Experts::new(b, c, [2 * c.intermediate, c.intermediate]),
            activation: c.activation,
        });
        let norm = |name| RmsNorm::new(b, name, c.hidden);
        let [input_norm, second_norm] = ["input_layernorm", "post_attention_layernorm"].map(norm);
        Self {
            mlp,
            input_norm,
            second_norm,
            attention: t.scope("self_attention", || SelfAttention::new(b, c)),
        }
    }

    /// [batch, seq, hidden] → [batch, seq, hidden].
    pub fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let normed = self.input_norm.call(t, &x);
        let (mut h, weights, logits) = self.attention.call(t, shared, &normed);
        drop(normed);
        h = t.add(&x, &h);
        let residual = h.clone();
        h = self.second_norm.call(t, &h);
        h = self.mlp.call(t, &h);
        let out = t.add(&residual, &h);
        drop((h, residual, logits, weights, x));
        out
    }
}

impl Moe {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let rows = t.reshape(x, [x.size(0) * x.size(1), x.last()]);
            let (routes, logits) = self.experts.router.call(t, &rows);
            let inputs = t.index(&rows, std::slice::from_ref(&routes.rows));
            let parts = {
                let fused = self.experts.input.call(t, &inputs, &routes.sizes);
                t.split(&fused, 1, &[fused.last() / 2; 2])
            };
            let product = {
                let activated = nn::activate(t, self.activation, parts[0].clone());
                t.mul(&activated, &parts[1])
            };
            let out = self.experts.merged(t, &product, &routes, [x.size(0), x.size(1)]);
            drop((product, parts, inputs, routes, logits, rows));
            out
        })
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &JetMoeConfig) -> Self {
        let inner = c.kv_heads * c.head_dim;
        Self {
            module: b.module(),
            experts: b.tape().scope("experts", || Experts::new(b, c, [inner, inner])),
            kv_proj: Linear::new(b, "kv_proj", c.hidden, 2 * inner, false),
            chosen: c.chosen,
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }

    /// `JetMoeMoA.map`: queries [batch × seq × chosen, width] of the experts, in the order of the rows.
    fn queries(&self, t: &Tape, x: &Tensor) -> (Tensor, Routes, Tensor) {
        let rows = t.reshape(x, [x.size(0) * x.size(1), x.last()]);
        let (routes, logits) = self.experts.router.call(t, &rows);
        let inputs = t.index(&rows, std::slice::from_ref(&routes.rows));
        let made = self.experts.input.call(t, &inputs, &routes.sizes);
        let zeros = t.empty(*made.shape(), made.dtype(), "zeros");
        let queries = t.index_add(&zeros, &routes.order, &made);
        drop((zeros, made, inputs, rows));
        (queries, routes, logits)
    }

    /// Output, weights, and the router's logits.
    fn call(&self, t: &Tape, shared: &BlockContext, x: &Tensor) -> (Tensor, Option<Tensor>, Tensor) {
        self.module.call(t, || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let (queries, routes, logits) = self.queries(t, x);
            let parts = {
                let fused = self.kv_proj.call(t, x);
                t.split(&fused, 2, &[fused.last() / 2; 2])
            };
            let inner = parts[0].last();
            let heads = |x: &Tensor, heads| t.transpose(&t.view(x, [batch, seq, heads, self.head_dim]), 1, 2);
            let kv_heads = inner / self.head_dim;
            let mut q = heads(&queries, self.chosen * kv_heads);
            let [mut k, mut v] = [heads(&parts[0], kv_heads), heads(&parts[1], kv_heads)];
            drop((queries, parts));
            {
                let [cos, sin] = [&shared.cos, &shared.sin].map(|wave| t.unsqueeze(wave, 1));
                let rotated = [&q, &k].map(|x| nn::apply_rotary(t, x, &cos, &sin));
                [q, k] = rotated;
            }
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            k = t.repeat_second(&k, self.chosen);
            v = t.repeat_second(&v, self.chosen);
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: shared.mask.as_ref(),
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (attended, weights) = nn::attention(t, shared.attn, &call);
            let taken = {
                let rows = t.reshape(&attended, [batch * seq * self.chosen, inner]);
                t.index(&rows, std::slice::from_ref(&routes.order))
            };
            let out = self.experts.merged(t, &taken, &routes, [batch, seq]);
            drop((taken, attended, routes));
            (out, weights, logits)
        })
    }
}
