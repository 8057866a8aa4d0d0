//! Layers of LFM2 (`Lfm2DecoderLayer`).

use super::config::Lfm2Config;
use super::experts::SparseMlp;
use super::short_conv::ShortConv;
use crate::dtype::DType;
use crate::model::decoder::block::BlockContext;
use crate::model::parts::mixed_layers::{LayerContext, MixedLayer};
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// `Lfm2DecoderLayer`.
pub struct Layer {
    operator: Operator,
    feed_forward: FeedForward,
    operator_norm: RmsNorm,
    ffn_norm: RmsNorm,
}

/// The part of a layer that takes each position by itself.
enum FeedForward {
    Mlp(Box<Mlp>),
    Experts(Box<SparseMlp>),
}

/// The part of a layer that mixes positions.
enum Operator {
    Conv(Box<ShortConv>),
    SelfAttention(Box<SelfAttention>),
}

/// `Lfm2Attention`.
struct SelfAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    out_proj: Linear,
    q_layernorm: RmsNorm,
    k_layernorm: RmsNorm,
    head_dim: u64,
}

/// `Lfm2MLP`.
struct Mlp {
    module: Module,
    w1: Linear,
    w3: Linear,
    w2: Linear,
}

impl Layer {
    pub fn new(b: &Builder, c: &Lfm2Config, index: usize) -> Self {
        let (t, is_conv) = (b.tape(), c.is_conv[index]);
        let experts = c.experts.as_ref().filter(|e| index as u64 >= e.dense_layers);
        let linear = |name, input, output| Linear::new(b, name, input, output, false);
        Self {
            operator: match is_conv {
                true => Operator::Conv(Box::new(t.scope("conv", || ShortConv::new(b, c)))),
                false => Operator::SelfAttention(Box::new(t.scope("self_attn", || SelfAttention::new(b, c)))),
            },
            feed_forward: t.scope("feed_forward", || match experts {
                Some(experts) => FeedForward::Experts(Box::new(SparseMlp::new(b, experts))),
                None => FeedForward::Mlp(Box::new(Mlp {
                    module: b.module(),
                    w1: linear("w1", c.hidden, c.intermediate),
                    w3: linear("w3", c.hidden, c.intermediate),
                    w2: linear("w2", c.intermediate, c.hidden),
                })),
            }),
            operator_norm: RmsNorm::new(b, "operator_norm", c.hidden),
            ffn_norm: RmsNorm::new(b, "ffn_norm", c.hidden),
        }
    }
}

impl MixedLayer for Layer {
    fn kind(&self) -> u64 {
        matches!(self.feed_forward, FeedForward::Experts(_)).into()
    }

    fn forward(&self, t: &Tape, shared: &LayerContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let normed = self.operator_norm.call(t, &x);
        let (mut h, _weights) = match &self.operator {
            Operator::Conv(conv) => {
                let cache = shared.block.cache.as_ref();
                let out = conv.call(t, shared.padding.as_ref(), cache, normed);
                (out, None)
            }
            Operator::SelfAttention(attention) => attention.call(t, &shared.block, normed),
        };
        drop(x);
        h = t.add(&h, &residual);
        let fed = {
            let normed = self.ffn_norm.call(t, &h);
            match &self.feed_forward {
                FeedForward::Mlp(mlp) => mlp.call(t, &normed),
                FeedForward::Experts(experts) => experts.call(t, &normed),
            }
        };
        t.add(&h, &fed)
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &Lfm2Config) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        let adapted = |name, output| Linear::adapted(b, name, c.hidden, output, false);
        Self {
            module: b.module(),
            q_proj: adapted("q_proj", q),
            k_proj: adapted("k_proj", kv),
            v_proj: adapted("v_proj", kv),
            out_proj: Linear::new(b, "out_proj", q, c.hidden, false),
            q_layernorm: RmsNorm::new(b, "q_layernorm", c.head_dim),
            k_layernorm: RmsNorm::new(b, "k_layernorm", c.head_dim),
            head_dim: c.head_dim,
        }
    }

    fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let project = |proj: &Linear| {
                let flat = proj.call(t, &x);
                t.view(&flat, [batch, seq, flat.last() / self.head_dim, self.head_dim])
            };
            let normed = |heads: Tensor, norm: &RmsNorm| {
                let normed = norm.call(t, &heads);
                t.transpose(&normed, 1, 2)
            };
            let mut q = normed(project(&self.q_proj), &self.q_layernorm);
            let mut k = normed(project(&self.k_proj), &self.k_layernorm);
            let mut v = t.transpose(&project(&self.v_proj), 1, 2);
            {
                let cos = t.unsqueeze(&shared.cos, 1);
                let sin = t.unsqueeze(&shared.sin, 1);
                let rotated = (nn::apply_rotary(t, &q, &cos, &sin), nn::apply_rotary(t, &k, &cos, &sin));
                (q, k) = rotated;
            }
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: shared.mask.as_ref(),
                dropout: 0.0,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, shared.attn, &call);
            out = t.reshape(&out, [batch, seq, q.size(1) * self.head_dim]);
            out = self.out_proj.call(t, &out);
            (out, weights)
        })
    }
}

impl Mlp {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let product = {
                let gate = {
                    let gate = self.w1.call(t, x);
                    t.activation("SiluBackward0", &gate, "silu")
                };
                let up = self.w3.call(t, x);
                t.mul(&gate, &up)
            };
            self.w2.call(t, &product)
        })
    }
}
