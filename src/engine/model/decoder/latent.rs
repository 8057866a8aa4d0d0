//! Multi-head latent attention: keys and values of all heads are made from one narrow latent
//! (`transformers/models/{deepseek_v2,deepseek_v3,minicpm3}/modeling_*.py`).

use super::block::BlockContext;
use super::config::DecoderConfig;
use super::latent_config::{LatentConfig, LatentRotation};
use super::layer::{Attend, Layer, scaled_by_position};
use super::mlp::Mlp;
use super::own_sizes::OwnSizes;
use super::sparse::SparseMlp;
use crate::dtype::DType;
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// Makes a block of a decoder with latent attention: Llama's, with another attention, and with experts or an MLP.
pub(crate) struct LatentLayer;

impl LatentLayer {
    #[expect(clippy::new_ret_no_self, reason = "the registry makes every block by `new`")]
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Layer {
        let experts = c.experts.as_ref().filter(|experts| experts.sparse[index]);
        let form = (c.activation, c.mlp_bias);
        Layer::with_parts(b, c, &|| Box::new(LatentAttention::new(b, c)), &|| match experts {
            Some(experts) => Box::new(SparseMlp::new(b, form, experts)),
            None => Box::new(Mlp::new(b, c)),
        })
    }
}

/// `DeepseekV3Attention` and its variants.
pub(crate) struct LatentAttention {
    pub(super) module: Module,
    pub(super) queries: Queries,
    pub(super) kv_a_proj_with_mqa: Linear,
    pub(super) kv_a_layernorm: RmsNorm,
    kv_b_proj: Linear,
    pub(super) o_proj: Linear,
    pub(super) latent: LatentConfig,
    pub(super) heads: u64,
    pub(super) dropout: f64,
    /// True if queries are multiplied by a number that grows with their position (Mistral 4).
    scales_queries: bool,
    /// True if queries and the latent are multiplied by numbers (LongCat-Flash).
    scales_latents: bool,
}

/// Projection of the queries.
pub(super) enum Queries {
    /// One projection.
    Whole(Linear),
    /// A projection to a latent, a norm, and a projection from it.
    Latent {
        q_a_proj: Linear,
        q_a_layernorm: RmsNorm,
        q_b_proj: Linear,
    },
    /// Projections as above, of which the last one also takes the latent before its norm, and makes gates too (A.X-K2).
    Gated {
        q_a_proj: Linear,
        q_a_layernorm: RmsNorm,
        q_gate_proj: Linear,
    },
}

impl Queries {
    fn new(b: &Builder, c: &DecoderConfig, latent: LatentConfig) -> Self {
        let width = c.heads * latent.width();
        let Some(rank) = latent.q_rank else {
            return Self::Whole(Linear::adapted(b, "q_proj", c.hidden, width, false));
        };
        let q_a_proj = Linear::new(b, "q_a_proj", c.hidden, rank, c.qkv_bias);
        let q_a_layernorm = RmsNorm::new(b, "q_a_layernorm", rank);
        match c.own.gate_rank() {
            None => Self::Latent {
                q_a_proj,
                q_a_layernorm,
                q_b_proj: Linear::new(b, "q_b_proj", rank, width, false),
            },
            Some(_) => Self::Gated {
                q_a_proj,
                q_a_layernorm,
                q_gate_proj: Linear::new(b, "q_gate_proj", 2 * rank, width + c.heads * latent.values, false),
            },
        }
    }

    /// Queries, and gates beside those of each head if they have some; and the latent after its norm and before it, as far as
    /// the caller's variables hold them.
    pub(super) fn forward(&self, t: &Tape, x: &Tensor) -> (Tensor, [Option<Tensor>; 2]) {
        match self {
            Self::Whole(q_proj) => (q_proj.call(t, x), [None, None]),
            Self::Latent {
                q_a_proj,
                q_a_layernorm,
                q_b_proj,
            } => {
                let latent = q_a_proj.call(t, x);
                let normed = q_a_layernorm.call(t, &latent);
                drop(latent);
                (q_b_proj.call(t, &normed), [Some(normed), None])
            }
            Self::Gated {
                q_a_proj,
                q_a_layernorm,
                q_gate_proj,
            } => {
                let latent = q_a_proj.call(t, x);
                let normed = q_a_layernorm.call(t, &latent);
                let made = q_gate_proj.call(t, &t.cat(&[&normed, &latent], 2));
                (made, [Some(normed), Some(latent)])
            }
        }
    }
}

impl LatentAttention {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let Some(latent) = c.latent else {
            unreachable!("the family has latent attention")
        };
        let inner = latent.kv_rank + latent.rope_dim;
        let outer = c.heads * (latent.nope_dim + latent.values);
        Self {
            module: b.module(),
            queries: Queries::new(b, c, latent),
            kv_a_proj_with_mqa: Linear::new(b, "kv_a_proj_with_mqa", c.hidden, inner, c.qkv_bias),
            kv_a_layernorm: RmsNorm::new(b, "kv_a_layernorm", latent.kv_rank),
            kv_b_proj: Linear::new(b, "kv_b_proj", latent.kv_rank, outer, false),
            o_proj: Linear::adapted(b, "o_proj", c.heads * latent.values, c.hidden, c.o_bias),
            latent,
            heads: c.heads,
            dropout: c.attention_dropout,
            scales_queries: c.family.block().scales_queries,
            scales_latents: matches!(c.own, OwnSizes::Shortcut { .. }),
        }
    }

    /// `expand_kv`: keys and values of all heads, from their latent and from the part that RoPE has rotated.
    pub(super) fn expanded(&self, t: &Tape, latent: &Tensor, rotated: &Tensor) -> [Tensor; 2] {
        let LatentConfig { nope_dim, values, .. } = self.latent;
        let [batch, seq] = [latent.size(0), latent.size(2)];
        let made = self.kv_b_proj.call(t, latent);
        let made = t.view(&made, [batch, seq, self.heads, nope_dim + values]);
        let made = t.transpose(&made, 1, 2);
        let mut parts = t.split(&made, 3, &[nope_dim, values]).into_iter();
        let (Some(of_keys), Some(of_values)) = (parts.next(), parts.next()) else {
            unreachable!("the split makes two parts")
        };
        let rotated = t.expand(rotated, [batch, self.heads, seq, rotated.last()]);
        let shape = [batch, self.heads, seq, self.latent.width()];
        let mut keys = t.empty(shape, made.dtype(), "keys");
        keys = t.set_columns(keys, &of_keys);
        keys = t.set_columns(keys, &rotated);
        [keys, of_values]
    }

    /// Rotates queries and keys by their positions.
    pub(super) fn apply_rope(&self, t: &Tape, [q, k]: [&Tensor; 2], shared: &BlockContext) -> [Tensor; 2] {
        let cos = t.unsqueeze(&shared.cos, 1);
        match self.latent.rotation {
            LatentRotation::Pairs => {
                let sin = t.unsqueeze(&shared.sin, 1);
                let [cos, sin] = [&cos, &sin].map(|wave| t.no_grad(|| t.slice(wave, 3, wave.last() / 2)));
                nn::apply_rotary_to_pairs(t, [q, k], &cos, &sin)
            }
            LatentRotation::Halves => {
                let sin = t.unsqueeze(&shared.sin, 1);
                [q, k].map(|x| nn::apply_rotary(t, x, &cos, &sin))
            }
            LatentRotation::Never => [q, k].map(Clone::clone),
            LatentRotation::Complex => nn::apply_complex_rotary_in_turn(t, [q, k], &cos),
        }
    }
}

impl Attend for LatentAttention {
    fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let latent = &self.latent;
            let (q, _) = self.queries.forward(t, &x);
            let q = t.view(&q, [batch, seq, self.heads, latent.width()]);
            let q = t.transpose(&q, 1, 2);
            let rotates = latent.rotation != LatentRotation::Never;
            let mut of_q = match rotates {
                true => t.split(&q, 3, &[latent.nope_dim, latent.rope_dim]),
                false => vec![q.clone(); 2],
            };
            let compressed = self.kv_a_proj_with_mqa.call(t, &x);
            let of_kv = t.split(&compressed, 2, &[latent.kv_rank, latent.rope_dim]);
            let mut kv = self.kv_a_layernorm.call(t, &of_kv[0]);
            if self.scales_latents {
                of_q = of_q.iter().map(|part| t.scale(part)).collect();
                kv = t.scale(&kv);
            }
            kv = t.view(&kv, [batch, 1, seq, latent.kv_rank]);
            let k = t.view(&of_kv[1], [batch, 1, seq, latent.rope_dim]);
            let [rotated_q, mut rotated_k] = self.apply_rope(t, [&of_q[1], &k], shared);
            of_q.truncate(1);
            if let Some(cache) = &shared.cache {
                (kv, rotated_k) = cache.update(t, &kv, &rotated_k);
            }
            let mut queries = match rotates {
                true => t.cat(&[&of_q[0], &rotated_q], 3),
                false => q,
            };
            if let Some(position_ids) = shared.position_ids.as_ref().filter(|_| self.scales_queries) {
                queries = scaled_by_position(t, queries, position_ids);
            }
            let [keys, values] = self.expanded(t, &kv, &rotated_k);
            let call = AttentionCall {
                q: &queries,
                k: &keys,
                v: &values,
                mask: shared.mask.as_ref(),
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, shared.attn, &call);
            out = t.contiguous(&t.reshape(&out, [batch, seq, self.heads * latent.values]));
            out = self.o_proj.call(t, &out);
            (out, weights)
        })
    }
}
