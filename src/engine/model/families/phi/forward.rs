//! Phi-1 to Phi-2: attention and MLP in parallel (`transformers/models/phi/modeling_phi.py`).

use std::rc::Rc;

use super::config::PhiConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::decoder::block::BlockContext;
use crate::model::decoder::head::{last_logits, logits_and_loss};
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{self, AttentionCall, Builder, Embedding, LayerNorm, Linear, Numbered, Pattern, Rotary};
use crate::tape::{Component, Module, Tape, Tensor};

/// `PhiForCausalLM`.
pub struct Phi {
    embed_tokens: Embedding,
    layers: Vec<Numbered<Layer>>,
    rotary: Rotary,
    final_layernorm: LayerNorm,
    lm_head: Linear,
    embedding_dropout: f64,
}

struct Layer {
    self_attn: SelfAttention,
    mlp: Mlp,
    input_layernorm: LayerNorm,
    dropout: f64,
}

struct SelfAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    dense: Linear,
    /// Norms of queries and keys, over each head.
    qk_norm: Option<[LayerNorm; 2]>,
    head_dim: u64,
    dropout: f64,
}

struct Mlp {
    module: Module,
    fc1: Linear,
    fc2: Linear,
    activation: Activation,
}

/// Names of the norms of queries and keys.
const QK_NORMS: [&str; 2] = ["q_layernorm", "k_layernorm"];

impl Phi {
    pub fn new(b: &Builder, c: &PhiConfig) -> Self {
        let t = b.tape();
        let (embed_tokens, layers, rotary, final_layernorm) = t.component("model", Component::LanguageModel, || {
            let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab, c.hidden);
            let layers = (0..c.layers as usize)
                .map(|i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c))))
                .collect();
            let rotary = Rotary::new(b, c.rope.rotated(c.head_dim())).dynamic(c.rope.is_dynamic());
            let final_layernorm = LayerNorm::new(b, "final_layernorm", c.hidden);
            (embed_tokens, layers, rotary.initialised(t), final_layernorm)
        });
        let lm_head = t.component("", Component::Head, || {
            if c.tie_word_embeddings {
                Linear::tied(b, "lm_head", embed_tokens.weight()).with_bias(b, "lm_head", c.vocab)
            } else {
                Linear::new(b, "lm_head", c.hidden, c.vocab, true)
            }
        });
        Self {
            embed_tokens,
            layers,
            rotary,
            final_layernorm,
            lm_head,
            embedding_dropout: c.embedding_dropout,
        }
    }

    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, packed: Option<&Tensor>) -> Tensor {
        let mut embeds = self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let cache = run.cache(&[]);
        let position_ids = packed.cloned().unwrap_or_else(|| run.position_ids(t, &embeds));
        let mask = nn::text_mask(t, run.attn, &embeds, packed, Pattern::Causal);
        embeds = t.dropout(&embeds, self.embedding_dropout);
        let (cos, sin) = self.rotary.call(t, &embeds, &position_ids);
        let shared = Rc::new(BlockContext {
            attn: run.attn,
            mask,
            cos,
            sin,
            splits_last: false,
            position_ids: Some(position_ids),
            cache,
        });
        let mut h = embeds.clone();
        for layer in &self.layers {
            let (block, shared) = (layer.clone(), shared.clone());
            let forward = move |t: &Tape, x: Tensor| block.forward(t, &shared, x);
            h = run.block(t, layer, h, forward);
        }
        let out = self.final_layernorm.call(t, &h);
        drop((shared, embeds));
        out
    }
}

impl Forward for Phi {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        Batch::of_text(t, run)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a text batch has ids")
        };
        let h = t.component("model", Component::LanguageModel, || {
            self.hidden(t, run, ids, batch.positions.as_ref())
        });
        logits_and_loss(t, &self.lm_head, h, batch)
    }

    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        let h = t.component("model", Component::LanguageModel, || self.hidden(t, run, ids, None));
        Some(last_logits(t, &self.lm_head, &h))
    }
}

impl Layer {
    fn new(b: &Builder, c: &PhiConfig) -> Self {
        let t = b.tape();
        Self {
            self_attn: t.scope("self_attn", || SelfAttention::new(b, c)),
            mlp: t.scope("mlp", || Mlp {
                module: b.module(),
                fc1: Linear::new(b, "fc1", c.hidden, c.intermediate, true),
                fc2: Linear::new(b, "fc2", c.intermediate, c.hidden, true),
                activation: c.activation,
            }),
            input_layernorm: LayerNorm::new(b, "input_layernorm", c.hidden),
            dropout: c.residual_dropout,
        }
    }

    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let h = self.input_layernorm.call(t, &x);
        drop(x);
        let (mut attended, _weights) = self.self_attn.call(t, shared, &h);
        attended = t.dropout(&attended, self.dropout);
        let fed = t.dropout(&self.mlp.call(t, &h), self.dropout);
        let sum = t.add(&attended, &fed);
        t.add(&sum, &residual)
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &PhiConfig) -> Self {
        let (q, kv) = (c.heads * c.head_dim(), c.kv_heads * c.head_dim());
        Self {
            module: b.module(),
            q_proj: Linear::adapted(b, "q_proj", c.hidden, q, true),
            k_proj: Linear::adapted(b, "k_proj", c.hidden, kv, true),
            v_proj: Linear::adapted(b, "v_proj", c.hidden, kv, true),
            dense: Linear::new(b, "dense", q, c.hidden, true),
            qk_norm: c
                .qk_norm
                .then(|| QK_NORMS.map(|name| LayerNorm::new(b, name, c.head_dim()))),
            head_dim: c.head_dim(),
            dropout: c.attention_dropout,
        }
    }

    fn call(&self, t: &Tape, shared: &BlockContext, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let project = |proj: &Linear| {
                let flat = proj.call(t, x);
                let split = t.view(&flat, [batch, seq, flat.last() / self.head_dim, self.head_dim]);
                t.transpose(&split, 1, 2)
            };
            let mut q = project(&self.q_proj);
            let mut k = project(&self.k_proj);
            let mut v = project(&self.v_proj);
            if let Some([q_norm, k_norm]) = &self.qk_norm {
                q = q_norm.call(t, &q);
                k = k_norm.call(t, &k);
            }
            let _rotated_and_rest;
            ([q, k], _rotated_and_rest) = {
                let cos = t.unsqueeze(&shared.cos, 1);
                let sin = t.unsqueeze(&shared.sin, 1);
                nn::apply_partial_rotary(t, [&q, &k], &cos, &sin)
            };
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
            out = t.reshape(&out, [batch, seq, q.size(1) * self.head_dim]);
            out = self.dense.call(t, &out);
            (out, weights)
        })
    }
}

impl Mlp {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let mut h = self.fc1.call(t, x);
            h = nn::activate(t, self.activation, h);
            self.fc2.call(t, &h)
        })
    }
}
