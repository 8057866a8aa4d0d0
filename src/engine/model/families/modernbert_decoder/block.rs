//! A block: attention and a gated MLP, each after a norm.

use super::config::ModernBertDecoderConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::decoder::block::BlockContext;
use crate::nn::{self, AttentionCall, Builder, LayerNorm, Linear};
use crate::tape::{Module, Tape, Tensor};

/// `ModernBertDecoderLayer`.
pub(super) struct Block {
    /// None in the first block, whose input is normed.
    attn_norm: Option<LayerNorm>,
    attn: SelfAttention,
    mlp_norm: LayerNorm,
    mlp: Mlp,
}

/// `ModernBertDecoderAttention`.
struct SelfAttention {
    module: Module,
    qkv: [Linear; 3],
    output: Linear,
    heads: u64,
    dropout: f64,
}

/// `ModernBertDecoderMLP`.
struct Mlp {
    module: Module,
    input: Linear,
    output: Linear,
    activation: Activation,
    dropout: f64,
}

/// A norm, with a bias if the configuration says so.
pub(super) fn norm(b: &Builder, c: &ModernBertDecoderConfig, name: &'static str) -> LayerNorm {
    match c.biases.norms {
        true => LayerNorm::new(b, name, c.hidden),
        false => LayerNorm::without_bias(b, name, c.hidden),
    }
}

impl Block {
    /// Makes a block.
    pub fn new(b: &Builder, c: &ModernBertDecoderConfig, is_first: bool) -> Self {
        let t = b.tape();
        Self {
            attn_norm: (!is_first).then(|| norm(b, c, "attn_norm")),
            attn: t.scope("attn", || SelfAttention::new(b, c)),
            mlp_norm: norm(b, c, "mlp_norm"),
            mlp: t.scope("mlp", || Mlp {
                module: b.module(),
                input: Linear::new(b, "Wi", c.hidden, 2 * c.intermediate, c.biases.mlp),
                output: Linear::new(b, "Wo", c.intermediate, c.hidden, c.biases.mlp),
                activation: c.activation,
                dropout: c.mlp_dropout,
            }),
        }
    }

    /// [batch, seq, hidden] → [batch, seq, hidden].
    pub fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let normed = self.attn_norm.as_ref().map(|norm| norm.call(t, &x));
        let outputs = self.attn.call(t, shared, normed.as_ref().unwrap_or(&x));
        drop(normed);
        let middle = t.add(&x, &outputs.0);
        let normed = self.mlp_norm.call(t, &middle);
        let fed = self.mlp.call(t, &normed);
        let out = t.add(&middle, &fed);
        drop((fed, normed, middle, outputs));
        out
    }
}

impl Mlp {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let fused = self.input.call(t, x);
            let half = fused.last() / 2;
            let parts = t.split(&fused, fused.dim() - 1, &[half; 2]);
            drop(fused);
            let product = {
                let activated = nn::activate(t, self.activation, parts[0].clone());
                t.mul(&activated, &parts[1])
            };
            let dropped = t.dropout(&product, self.dropout);
            drop(product);
            self.output.call(t, &dropped)
        })
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &ModernBertDecoderConfig) -> Self {
        let map = |name| Linear::new(b, name, c.hidden, c.hidden, c.biases.attention);
        Self {
            module: b.module(),
            qkv: ["q_proj", "k_proj", "v_proj"].map(map),
            output: map("Wo"),
            heads: c.heads,
            dropout: c.attention_dropout,
        }
    }

    /// Output and weights.
    fn call(&self, t: &Tape, shared: &BlockContext, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let [q, k, mut v] = [0, 1, 2].map(|i| {
                let flat = self.qkv[i].call(t, x);
                t.transpose(&t.view(&flat, [batch, seq, self.heads, hidden / self.heads]), 1, 2)
            });
            let (q, mut k) = rotated(t, [q, k], shared);
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: shared.mask.as_ref(),
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, shared.attn, &call);
            out = t.reshape(&out, [batch, seq, hidden]);
            let projected = self.output.call(t, &out);
            (t.dropout(&projected, self.dropout), weights)
        })
    }
}

/// Queries and keys rotated in fp32 and back in their own type.
fn rotated(t: &Tape, [q, k]: [Tensor; 2], shared: &BlockContext) -> (Tensor, Tensor) {
    let [cos, sin] = [&shared.cos, &shared.sin].map(|wave| t.unsqueeze(wave, 1));
    let wide = [&q, &k].map(|x| {
        let straight = {
            let wide = t.to_dtype(x, DType::F32);
            t.mul(&wide, &cos)
        };
        let across = {
            let rotated = nn::rotate_half(t, &t.to_dtype(x, DType::F32));
            t.mul(&rotated, &sin)
        };
        t.add(&straight, &across)
    });
    let rotated = (t.to_dtype(&wide[0], q.dtype()), t.to_dtype(&wide[1], k.dtype()));
    drop((wide, q, k));
    rotated
}
