//! OPT (`transformers/models/opt/modeling_opt.py`).

use std::rc::Rc;

use super::config::OptConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::decoder::head::{last_logits, logits_and_loss};
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{self, AttentionCall, Builder, Embedding, KvCache, LayerNorm, Linear, Numbered};
use crate::setup::Attention;
use crate::tape::{Component, Mask, Module, Tape, Tensor};

/// `OPTForCausalLM`.
pub struct Opt {
    decoder: OptDecoder,
    lm_head: Linear,
}

/// `OPTDecoder`: embeddings, blocks, last norm.
struct OptDecoder {
    module: Module,
    embed_tokens: Embedding,
    embed_positions: Embedding,
    project_out: Option<Linear>,
    project_in: Option<Linear>,
    final_layer_norm: Option<LayerNorm>,
    layers: Vec<Numbered<Layer>>,
}

struct Layer {
    self_attn: SelfAttention,
    self_attn_layer_norm: LayerNorm,
    fc1: Linear,
    fc2: Linear,
    final_layer_norm: LayerNorm,
    activation: Activation,
    norm_before: bool,
    dropout: f64,
}

struct SelfAttention {
    module: Module,
    k_proj: Linear,
    v_proj: Linear,
    q_proj: Linear,
    out_proj: Linear,
    heads: u64,
    dropout: f64,
}

/// State that all blocks of one forward share.
struct BlockContext {
    attn: Attention,
    mask: Option<Mask>,
    cache: Option<KvCache>,
    /// Passed to every block, so a checkpointed block keeps it.
    _position_ids: Tensor,
}

impl Opt {
    /// Makes the module `path` (empty for a whole model).
    pub fn new(b: &Builder, c: &OptConfig, path: &'static str) -> Self {
        let t = b.tape();
        let decoder = t.component(path, Component::LanguageModel, || {
            t.scope("model.decoder", || OptDecoder::new(b, c))
        });
        let lm_head = t.component(path, Component::Head, || {
            if c.tie_word_embeddings {
                Linear::tied(b, "lm_head", decoder.embed_tokens.weight())
            } else {
                Linear::new(b, "lm_head", c.embedding, c.vocab, false)
            }
        });
        Self { decoder, lm_head }
    }

    /// Token ids [batch, seq] → [batch, seq, embedding].
    pub fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        let embed_tokens = &self.decoder.embed_tokens;
        t.scope("model.decoder.embed_tokens", || {
            run.embedded(t, embed_tokens.forward(t, ids))
        })
    }

    /// Embeddings [batch, seq, embedding] → last hidden states.
    pub fn hidden(&self, t: &Tape, run: &Run, embeds: Tensor, packed: Option<&Tensor>) -> Tensor {
        self.decoder.call(t, run, embeds, packed)
    }

    /// Last hidden states → logits [batch, seq, vocab].
    pub fn logits(&self, t: &Tape, h: &Tensor) -> Tensor {
        self.lm_head.call(t, h)
    }
}

impl Forward for Opt {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        Batch::of_text(t, run)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a text batch has ids")
        };
        let h = t.component("", Component::LanguageModel, || {
            let embeds = self.embed(t, run, ids);
            self.hidden(t, run, embeds, batch.positions.as_ref())
        });
        logits_and_loss(t, &self.lm_head, h, batch)
    }

    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        let h = t.component("", Component::LanguageModel, || {
            let embeds = self.embed(t, run, ids);
            self.hidden(t, run, embeds, None)
        });
        Some(last_logits(t, &self.lm_head, &h))
    }
}

impl OptDecoder {
    fn new(b: &Builder, c: &OptConfig) -> Self {
        let projected = c.embedding != c.hidden;
        Self {
            module: b.module(),
            embed_tokens: Embedding::new(b, "embed_tokens", c.vocab, c.embedding),
            embed_positions: Embedding::new(b, "embed_positions", c.positions + 2, c.hidden),
            project_out: projected.then(|| Linear::new(b, "project_out", c.hidden, c.embedding, false)),
            project_in: projected.then(|| Linear::new(b, "project_in", c.embedding, c.hidden, false)),
            final_layer_norm: c.final_norm.then(|| norm(b, c, "final_layer_norm")),
            layers: (0..c.layers as usize)
                .map(|i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c))))
                .collect(),
        }
    }

    fn call(&self, t: &Tape, run: &Run, embeds: Tensor, packed: Option<&Tensor>) -> Tensor {
        self.module.call(t, move || {
            let cache = run.cache(&[]);
            // For packed samples the model makes a padding mask of its own, and does not separate them.
            let ones = packed.map(|ids| t.empty(*ids.shape(), DType::F32, "attention mask of ones"));
            let position_ids = packed.cloned().unwrap_or_else(|| position_ids(t, &embeds));
            let mask = nn::causal_mask(t, run.attn, &embeds);
            let positions = t.scope("embed_positions", || {
                let shifted = t.compute(&position_ids, position_ids.dtype(), "position ids + 2");
                self.embed_positions.forward(t, &shifted)
            });
            let mut inputs = embeds;
            if let Some(project_in) = &self.project_in {
                inputs = project_in.call(t, &inputs);
            }
            let mut h = t.add(&inputs, &positions);
            let shared = Rc::new(BlockContext {
                attn: run.attn,
                mask,
                cache,
                _position_ids: position_ids,
            });
            for layer in &self.layers {
                let (block, shared) = (layer.clone(), shared.clone());
                let forward = move |t: &Tape, x: Tensor| block.forward(t, &shared, x);
                h = run.block(t, layer, h, forward);
            }
            if let Some(norm) = &self.final_layer_norm {
                h = norm.call(t, &h);
            }
            if let Some(project_out) = &self.project_out {
                h = project_out.call(t, &h);
            }
            drop((shared, positions, inputs, ones));
            h
        })
    }
}

/// `cumsum(attention_mask) * attention_mask - 1`, [batch, seq].
fn position_ids(t: &Tape, embeds: &Tensor) -> Tensor {
    let shape = [embeds.size(0), embeds.size(1)];
    let step = |name| nn::ids(t, &shape, name);
    let summed = t.running_sum_of(shape);
    let masked = step("times the mask");
    let ids = step("position ids");
    drop((masked, summed));
    ids
}

fn norm(b: &Builder, c: &OptConfig, name: &'static str) -> LayerNorm {
    if c.norm_affine {
        LayerNorm::new(b, name, c.hidden)
    } else {
        LayerNorm::plain(name)
    }
}

impl Layer {
    fn new(b: &Builder, c: &OptConfig) -> Self {
        Self {
            self_attn: b.tape().scope("self_attn", || SelfAttention::new(b, c)),
            self_attn_layer_norm: norm(b, c, "self_attn_layer_norm"),
            fc1: Linear::new(b, "fc1", c.hidden, c.intermediate, c.bias),
            fc2: Linear::new(b, "fc2", c.intermediate, c.hidden, c.bias),
            final_layer_norm: norm(b, c, "final_layer_norm"),
            activation: c.activation,
            norm_before: c.norm_before,
            dropout: c.dropout,
        }
    }

    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let shape = *x.shape();
        let attention_norm = |h: &Tensor| self.self_attn_layer_norm.call(t, h);
        let final_norm = |h: &Tensor| self.final_layer_norm.call(t, h);
        let residual = x.clone();
        let mut h = x;
        if self.norm_before {
            h = attention_norm(&h);
        }
        let (out, _weights) = self.self_attn.call(t, shared, h);
        h = out;
        h = t.functional_dropout(&h, self.dropout);
        h = t.add(&residual, &h);
        if !self.norm_before {
            h = attention_norm(&h);
        }
        h = t.reshape(&h, [shape[0] * shape[1], shape[2]]);
        let residual = h.clone();
        if self.norm_before {
            h = final_norm(&h);
        }
        h = self.fc1.call(t, &h);
        h = nn::activate(t, self.activation, h);
        h = self.fc2.call(t, &h);
        h = t.functional_dropout(&h, self.dropout);
        h = t.view(&t.add(&residual, &h), shape);
        if !self.norm_before {
            h = final_norm(&h);
        }
        h
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &OptConfig) -> Self {
        Self {
            module: b.module(),
            k_proj: Linear::adapted(b, "k_proj", c.hidden, c.hidden, c.bias),
            v_proj: Linear::adapted(b, "v_proj", c.hidden, c.hidden, c.bias),
            q_proj: Linear::adapted(b, "q_proj", c.hidden, c.hidden, c.bias),
            out_proj: Linear::new(b, "out_proj", c.hidden, c.hidden, c.bias),
            heads: c.heads,
            dropout: c.attention_dropout,
        }
    }

    fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let heads = |x: Tensor| t.transpose(&t.view(&x, [batch, seq, self.heads, hidden / self.heads]), 1, 2);
            let q = heads(t.scale(&self.q_proj.call(t, &x)));
            let k = self.k_proj.call(t, &x);
            let v = self.v_proj.call(t, &x);
            let (mut k, mut v) = (heads(k), heads(v));
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
            out = self.out_proj.call(t, &out);
            (out, weights)
        })
    }
}
