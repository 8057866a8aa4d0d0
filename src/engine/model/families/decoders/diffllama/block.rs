//! DiffLlama's block (`transformers/models/diffllama/modeling_diffllama.py`).

use crate::dtype::DType;
use crate::model::decoder::DecoderConfig;
use crate::model::decoder::block::{Block, BlockContext};
use crate::model::decoder::mlp::Mlp;
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// `DiffLlamaDecoderLayer`.
pub(crate) struct Layer {
    self_attn: SelfAttention,
    mlp: Mlp,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
}

/// `DiffLlamaAttention`.
struct SelfAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    /// Two pairs of vectors of one head's elements, whose products weigh the second attention.
    lambdas: [[Tensor; 2]; 2],
    head_dim: u64,
}

impl Layer {
    pub fn new(b: &Builder, c: &DecoderConfig, _: usize) -> Self {
        let t = b.tape();
        Self {
            self_attn: t.scope("self_attn", || SelfAttention::new(b, c)),
            mlp: t.scope("mlp", || Mlp::new(b, c)),
            input_layernorm: RmsNorm::new(b, "input_layernorm", c.hidden),
            post_attention_layernorm: RmsNorm::new(b, "post_attention_layernorm", c.hidden),
        }
    }
}

impl Block for Layer {
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let (out, _weights) = self.self_attn.call(t, shared, h);
        h = t.add(&residual, &out);
        drop(out);
        let residual = h.clone();
        h = self.post_attention_layernorm.call(t, &h);
        h = self.mlp.call(t, h);
        t.add(&residual, &h)
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        let [q_proj, k_proj, v_proj] = [("q_proj", q), ("k_proj", kv), ("v_proj", kv)]
            .map(|(name, width)| Linear::adapted(b, name, c.hidden, width, c.qkv_bias));
        let o_proj = Linear::adapted(b, "o_proj", q, c.hidden, c.o_bias);
        let names = [["lambda_q1", "lambda_k1"], ["lambda_q2", "lambda_k2"]];
        Self {
            module: b.module(),
            q_proj,
            k_proj,
            v_proj,
            o_proj,
            lambdas: names.map(|pair| pair.map(|name| b.weight(name, [c.head_dim]))),
            head_dim: c.head_dim,
        }
    }

    /// The exponential of a pair's product, [] in `dtype`.
    fn weight(&self, t: &Tape, pair: usize, dtype: DType) -> Tensor {
        let [q, k] = &self.lambdas[pair];
        let power = {
            let sum = {
                let product = t.mul(q, k);
                t.sum_in_f32(&product)
            };
            t.exp(&sum)
        };
        t.to_dtype(&power, dtype)
    }

    fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let heads = |proj: &Linear| {
                let flat = proj.call(t, &x);
                let split = t.view(&flat, [batch, seq, flat.last() / self.head_dim, self.head_dim]);
                t.transpose(&split, 1, 2)
            };
            let mut q = heads(&self.q_proj);
            let mut k = heads(&self.k_proj);
            let mut v = heads(&self.v_proj);
            {
                let cos = t.unsqueeze(&shared.cos, 1);
                let sin = t.unsqueeze(&shared.sin, 1);
                let rotated = (nn::apply_rotary(t, &q, &cos, &sin), nn::apply_rotary(t, &k, &cos, &sin));
                (q, k) = rotated;
            }
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let [first, second] = {
                let halves = t.split(&v, 1, &[v.size(1) / 2; 2]);
                [0, 1].map(|i| t.repeat_second(&halves[i], 2))
            };
            let attend = |v: &Tensor| {
                let call = AttentionCall {
                    q: &q,
                    k: &k,
                    v,
                    mask: shared.mask.as_ref(),
                    dropout: 0.0,
                    softmax: Some(DType::F32),
                };
                nn::attention(t, shared.attn, &call)
            };
            let (first_out, weights) = attend(&first);
            let (second_out, _weights) = attend(&second);
            let joined = t.cat(&[&first_out, &second_out], 3);
            drop((first_out, second_out));
            let (out, _held) = self.difference(t, joined, q.dtype());
            let out = t.view(&out, [batch, seq, q.size(1) * self.head_dim]);
            (self.o_proj.call(t, &out), weights)
        })
    }

    /// Subtracts the second half of the heads, weighed, from the first, and normalises the difference; the caller holds the
    /// halves and the weights.
    fn difference(&self, t: &Tape, joined: Tensor, dtype: DType) -> (Tensor, Vec<Tensor>) {
        let mut held = t.split(&joined, 2, &[joined.size(2) / 2; 2]);
        let weights = [0, 1].map(|pair| self.weight(t, pair, dtype));
        let weight = {
            let difference = t.sub(&weights[0], &weights[1]);
            t.shift(&difference)
        };
        let mut out = {
            let weighed = t.mul(&weight, &held[1]);
            t.sub(&held[0], &weighed)
        };
        drop(joined);
        out = {
            let normed = t.scope("groupnorm", || t.rms_norm(&out));
            t.scale(&normed)
        };
        held.push(weight);
        held.extend(weights);
        (out, held)
    }
}
