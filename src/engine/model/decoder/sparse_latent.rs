//! Latent attention to keys that an indexer chooses, or that one of a block before chose
//! (`transformers/models/{deepseek_v32,glm_moe_dsa}/modeling_*.py`).

use super::block::{Block, BlockContext};
use super::config::DecoderConfig;
use super::indexer::{Indexer, hide_others};
use super::latent::LatentAttention;
use super::layer::FeedForward;
use super::mlp::Mlp;
use super::sparse::SparseMlp;
use crate::dtype::DType;
use crate::nn::{self, AttentionCall, Builder, Linear, Norm, SinkCall};
use crate::tape::{Mask, Tape, Tensor};

/// `DeepseekV32DecoderLayer`, `GlmMoeDsaDecoderLayer`.
pub(crate) struct SparseLatentLayer {
    self_attn: SparseAttention,
    mlp: Box<dyn FeedForward>,
    input_layernorm: Norm,
    post_attention_layernorm: Norm,
}

/// `DeepseekV32Attention`, `GlmMoeDsaAttention`.
pub(crate) struct SparseAttention {
    latent: LatentAttention,
    /// `None` in a block that takes the choice of the block before it.
    indexer: Option<Indexer>,
    /// True if the choice of keys outlives attention, which returns it.
    returns_choice: bool,
    gate: Option<Gate>,
}

/// Gates of what attention makes, and scores that no key has (HY-4).
struct Gate {
    gate_proj: Linear,
    /// [heads].
    sinks: Tensor,
}

impl SparseLatentLayer {
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Self {
        let t = b.tape();
        let experts = c.experts.as_ref().filter(|experts| experts.sparse[index]);
        let form = (c.activation, c.mlp_bias);
        let norm = |name| Norm::new(b, name, c.hidden, c.norm);
        Self {
            self_attn: t.scope("self_attn", || SparseAttention::new(b, c, index)),
            mlp: t.scope("mlp", || match experts {
                Some(experts) => Box::new(SparseMlp::new(b, form, experts)) as Box<dyn FeedForward>,
                None => Box::new(Mlp::new(b, c)),
            }),
            input_layernorm: norm("input_layernorm"),
            post_attention_layernorm: norm("post_attention_layernorm"),
        }
    }
}

impl Block for SparseLatentLayer {
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        self.forward_choosing(t, shared, x, None).0
    }

    fn forward_choosing(
        &self,
        t: &Tape,
        shared: &BlockContext,
        x: Tensor,
        before: Option<&Tensor>,
    ) -> (Tensor, Option<Tensor>) {
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let (out, _weights, choice) = self.self_attn.call(t, shared, h, before);
        h = t.add(&residual, &out);
        drop(out);
        let residual = h.clone();
        h = self.post_attention_layernorm.call(t, &h);
        h = self.mlp.call(t, h);
        (t.add(&residual, &h), choice)
    }
}

/// What attention returns: its output, the weights if it is eager, and the keys that it chose if it returns them.
type Attended = (Tensor, Option<Tensor>, Option<Tensor>);

impl SparseAttention {
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Self {
        let Some(sizes) = c.own.indexers() else {
            unreachable!("the family has indexers")
        };
        let latent = LatentAttention::new(b, c);
        let takes_choice = sizes.takes_choice.as_ref().is_some_and(|takes| takes[index]);
        let widths = [
            c.hidden,
            latent.latent.q_rank.unwrap_or(c.hidden),
            latent.latent.rope_dim,
        ];
        let indexer = || b.tape().scope("indexer", || Indexer::new(b, sizes, widths));
        let indexer = (!takes_choice).then(indexer);
        let gate = || Gate {
            gate_proj: Linear::adapted(b, "gate_proj", c.hidden, c.heads * latent.latent.values, false),
            sinks: b.weight("sinks", [c.heads]),
        };
        Self {
            gate: c.own.streams().map(|_| gate()),
            indexer,
            latent,
            returns_choice: sizes.takes_choice.is_some(),
        }
    }

    pub fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor, before: Option<&Tensor>) -> Attended {
        let of = &self.latent;
        of.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let latent = &of.latent;
            let gate = self.gate.as_ref().map(|gate| gate.gate_proj.call(t, &x));
            let (q, [of_queries, _before_norm]) = of.queries.forward(t, &x);
            let mut q = t.view(&q, [batch, seq, of.heads, q.last() / of.heads]);
            let mut fused_gate = None;
            if q.last() > latent.width() {
                let parts = t.split(&q, 3, &[latent.width(), latent.values]);
                fused_gate = Some(t.reshape(&parts[1], [batch, seq, of.heads * latent.values]));
                q = parts[0].clone();
            }
            q = t.transpose(&q, 1, 2);
            let of_q = t.split(&q, 3, &[latent.nope_dim, latent.rope_dim]);
            let compressed = of.kv_a_proj_with_mqa.call(t, &x);
            let of_kv = t.split(&compressed, 2, &[latent.kv_rank, latent.rope_dim]);
            let mut kv = of.kv_a_layernorm.call(t, &of_kv[0]);
            kv = t.view(&kv, [batch, 1, seq, latent.kv_rank]);
            let k = t.view(&of_kv[1], [batch, 1, seq, latent.rope_dim]);
            let [rotated_q, rotated_k] = of.apply_rope(t, [&of_q[1], &k], shared);
            let queries = t.cat(&[&of_q[0], &rotated_q], 3);
            let [mut keys, mut values] = of.expanded(t, &kv, &rotated_k);
            if let Some(cache) = &shared.cache {
                (keys, values) = cache.update(t, &keys, &values);
            }
            let choice = match (&self.indexer, &of_queries, before) {
                (Some(indexer), Some(of_queries), _) => indexer.call(t, shared, &x, of_queries),
                (_, _, Some(before)) => before.clone(),
                _ => unreachable!("the first block has an indexer, and queries have a latent"),
            };
            let hidden = shared
                .mask
                .as_ref()
                .map(|mask| hide_others(t, mask, &choice, keys.size(2)));
            let mask = hidden.as_ref().map(|(mask, _)| mask);
            let (mut out, weights) = self.attend(t, shared, [&queries, &keys, &values], mask);
            if let Some(gate) = &gate {
                let activated = t.sigmoid(&t.view(gate, *out.shape()));
                out = t.mul(&out, &activated);
            }
            out = t.contiguous(&t.reshape(&out, [batch, seq, of.heads * latent.values]));
            if let Some(gate) = &fused_gate {
                let activated = {
                    let wide = t.to_dtype(gate, DType::F32);
                    t.sigmoid(&wide)
                };
                let wide = t.mul(&out, &activated);
                drop(activated);
                out = t.to_dtype(&wide, out.dtype());
            }
            out = of.o_proj.call(t, &out);
            (out, weights, self.returns_choice.then_some(choice))
        })
    }

    fn attend(
        &self,
        t: &Tape,
        shared: &BlockContext,
        [q, k, v]: [&Tensor; 3],
        mask: Option<&Mask>,
    ) -> (Tensor, Option<Tensor>) {
        let dropout = self.latent.dropout;
        if let Some(Gate { sinks, .. }) = &self.gate {
            let call = SinkCall {
                q,
                k,
                v,
                mask,
                sinks,
                dropout,
            };
            let (out, weights) = nn::sink_attention(t, &call);
            return (out, Some(weights));
        }
        let call = AttentionCall {
            q,
            k,
            v,
            mask,
            dropout,
            softmax: Some(DType::F32),
        };
        nn::attention(t, shared.attn, &call)
    }
}
