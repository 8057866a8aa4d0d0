//! Gemma's decoders (`transformers/models/{gemma,gemma2,gemma3}/modeling_*.py`).

use std::rc::Rc;

use super::config::DecoderConfig;
use super::family::{GemmaModules, Modules};
use super::head::{Logits, formed_last_logits, formed_logits_and_loss, head_for};
use super::mlp::Mlp;
use crate::dtype::DType;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{
    self, AttentionCall, Builder, KvCache, Linear, Numbered, Pattern, RmsNorm, RmsScale, Rotary, ScaledEmbedding,
};
use crate::setup::Attention;
use crate::tape::{Component, Mask, Module, Tape, Tensor};

/// `GemmaForCausalLM`, `Gemma2ForCausalLM`, `Gemma3ForCausalLM`.
pub struct GemmaLm {
    model: GemmaText,
    lm_head: Linear,
    logit_softcap: bool,
}

/// `GemmaModel`, `Gemma2Model`, `Gemma3TextModel`.
pub struct GemmaText {
    embed_tokens: ScaledEmbedding,
    layers: Vec<Numbered<Layer>>,
    norm: RmsNorm,
    /// One for all blocks, or one for each kind of block (Gemma 3).
    rotary: Vec<Rotary>,
    /// Number of positions that each block sees; `None` if it sees all.
    windows: Vec<Option<u64>>,
}

/// Masks of full and of sliding blocks.
#[derive(Clone, Default)]
pub struct Masks {
    pub full: Option<Mask>,
    pub sliding: Option<Mask>,
}

/// Inputs that the caller prepares; the decoder makes the absent ones.
#[derive(Default)]
pub struct Given {
    /// Positions of samples that are packed into one row, [1, seq].
    pub packed: Option<Tensor>,
    pub position_ids: Option<Tensor>,
    pub masks: Option<Masks>,
}

struct Layer {
    slides: bool,
    self_attn: SelfAttention,
    mlp: Mlp,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
    /// Norms before and after the MLP (Gemma 2 and 3).
    feedforward_norms: Option<[RmsNorm; 2]>,
}

struct SelfAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    /// Norms of queries and keys over each head (Gemma 3).
    qk_norms: Option<[RmsNorm; 2]>,
    head_dim: u64,
    dropout: f64,
    softcap: bool,
    /// True if Liger replaces the rotation.
    liger_rope: bool,
}

/// State that all blocks of one kind share in one forward.
struct BlockContext {
    attn: Attention,
    mask: Option<Mask>,
    cos: Tensor,
    sin: Tensor,
    cache: Option<KvCache>,
    /// Passed to every block, so a checkpointed block keeps it.
    _position_ids: Tensor,
}

/// Modules of a family of Gemma's.
fn modules(c: &DecoderConfig) -> GemmaModules {
    match c.family.modules {
        Modules::Gemma(modules) => modules,
        Modules::Llama(_) => unreachable!("Gemma's modules run Gemma's families"),
    }
}

fn norm(b: &Builder, name: &'static str, width: u64) -> RmsNorm {
    RmsNorm::scaled(b, name, width, RmsScale::OnePlusWeight)
}

impl GemmaLm {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let model = b
            .tape()
            .component("model", Component::LanguageModel, || GemmaText::new(b, c));
        let lm_head = head_for(b, model.weight(), c.tie_word_embeddings);
        Self {
            model,
            lm_head,
            logit_softcap: c.logit_softcap.is_some(),
        }
    }
}

impl Forward for GemmaLm {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        Batch::of_text(t, run)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a text batch has ids")
        };
        let h = t.component("model", Component::LanguageModel, || {
            let embeds = self.model.embed(t, run, ids);
            let given = Given {
                packed: batch.positions.clone(),
                ..Given::default()
            };
            self.model.forward(t, run, embeds, given)
        });
        formed_logits_and_loss(t, &self.lm_head, h, batch, Logits::capped(self.logit_softcap))
    }

    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        let head = (&self.lm_head, self.logit_softcap);
        Some(self.model.next_logits(t, run, head, ids))
    }
}

impl GemmaText {
    /// Returns the logits [batch, 1, vocab] after one new token of each sample, ids [batch, 1].
    pub fn next_logits(&self, t: &Tape, run: &Run, (lm_head, softcap): (&Linear, bool), ids: &Tensor) -> Tensor {
        let embeds = self.embed(t, run, ids);
        let h = self.forward(t, run, embeds, Given::default());
        formed_last_logits(t, lm_head, &h, Logits::capped(softcap))
    }

    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let t = b.tape();
        let kinds = match modules(c).rotary_by_kind {
            true => [false, true]
                .iter()
                .filter(|&&slides| c.windows.iter().any(|w| w.is_some() == slides))
                .count(),
            false => 1,
        };
        Self {
            embed_tokens: ScaledEmbedding::new(b, "embed_tokens", c.vocab, c.hidden),
            layers: (0..c.layers as usize)
                .map(|i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c, c.windows[i].is_some()))))
                .collect(),
            norm: norm(b, "norm", c.hidden),
            rotary: {
                let made: Vec<Rotary> = (0..kinds)
                    .map(|_| Rotary::new(b, c.head_dim).dynamic(c.rope.is_dynamic()))
                    .collect();
                made.into_iter().map(|rotary| rotary.initialised(t)).collect()
            },
            windows: c.windows.clone(),
        }
    }

    /// The token embedding's table, for a head that shares it.
    pub fn weight(&self) -> &Tensor {
        self.embed_tokens.weight()
    }

    /// Positions that sliding blocks see; `None` if no block slides.
    pub fn window(&self) -> Option<u64> {
        self.windows.iter().copied().flatten().next()
    }

    /// Token ids [batch, seq] → [batch, seq, hidden].
    pub fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds))
    }

    /// Embeddings [batch, seq, hidden] → last hidden states of the same shape.
    pub fn forward(&self, t: &Tape, run: &Run, embeds: Tensor, given: Given) -> Tensor {
        let cache = run.cache(&self.windows);
        let packed = given.packed.as_ref();
        let position_ids = given
            .position_ids
            .or_else(|| packed.cloned())
            .unwrap_or_else(|| run.position_ids(t, &embeds));
        let masks = given
            .masks
            .unwrap_or_else(|| self.causal_masks(t, run, &embeds, packed));
        let tables: Vec<(Tensor, Tensor)> = self
            .rotary
            .iter()
            .map(|rotary| rotary.call(t, &embeds, &position_ids))
            .collect();
        let shared = |slides: bool, mask: &Option<Mask>| {
            let (cos, sin) = &tables[usize::from(slides).min(tables.len() - 1)];
            Rc::new(BlockContext {
                attn: run.attn,
                mask: mask.clone(),
                cos: cos.clone(),
                sin: sin.clone(),
                cache: cache.clone(),
                _position_ids: position_ids.clone(),
            })
        };
        let kinds = [shared(false, &masks.full), shared(true, &masks.sliding)];
        let mut h = embeds.clone();
        for layer in &self.layers {
            let (block, shared) = (layer.clone(), kinds[usize::from(layer.slides)].clone());
            let forward = move |t: &Tape, x: Tensor| block.forward(t, &shared, x);
            h = run.block(t, layer, h, forward);
        }
        let out = self.norm.call(t, &h);
        drop(embeds);
        out
    }

    fn causal_masks(&self, t: &Tape, run: &Run, embeds: &Tensor, packed: Option<&Tensor>) -> Masks {
        let mask = |pattern| nn::text_mask(t, run.attn, embeds, packed, pattern);
        Masks {
            full: mask(Pattern::Causal),
            sliding: self.window().and_then(|window| mask(Pattern::Sliding(window))),
        }
    }
}

impl Layer {
    fn new(b: &Builder, c: &DecoderConfig, slides: bool) -> Self {
        let t = b.tape();
        let modules = modules(c);
        Self {
            slides,
            self_attn: t.scope("self_attn", || SelfAttention::new(b, c)),
            mlp: t.scope("mlp", || Mlp::new(b, c)),
            input_layernorm: norm(b, "input_layernorm", c.hidden),
            post_attention_layernorm: norm(b, modules.second_norm, c.hidden),
            feedforward_norms: modules.sandwich_norms.then(|| {
                ["pre_feedforward_layernorm", "post_feedforward_layernorm"].map(|name| norm(b, name, c.hidden))
            }),
        }
    }

    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let (out, _weights) = self.self_attn.call(t, shared, h);
        h = out;
        let after_attention = |h: &Tensor| self.post_attention_layernorm.call(t, h);
        let Some([before, after]) = &self.feedforward_norms else {
            h = t.add(&residual, &h);
            let residual = h.clone();
            h = after_attention(&h);
            h = self.mlp.call(t, h);
            return t.add(&residual, &h);
        };
        h = after_attention(&h);
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = before.call(t, &h);
        h = self.mlp.call(t, h);
        h = after.call(t, &h);
        t.add(&residual, &h)
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        let linear = |name, input, output, bias| Linear::adapted(b, name, input, output, bias);
        Self {
            module: b.module(),
            q_proj: linear("q_proj", c.hidden, q, c.qkv_bias),
            k_proj: linear("k_proj", c.hidden, kv, c.qkv_bias),
            v_proj: linear("v_proj", c.hidden, kv, c.qkv_bias),
            o_proj: linear("o_proj", q, c.hidden, c.o_bias),
            qk_norms: c
                .qk_norm
                .then(|| ["q_norm", "k_norm"].map(|name| norm(b, name, c.head_dim))),
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
            softcap: modules(c).caps_scores && c.attention_softcap.is_some(),
            liger_rope: b.has_liger_rope(),
        }
    }

    fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let heads = |x: Tensor| {
                let split = t.view(&x, [batch, seq, x.last() / self.head_dim, self.head_dim]);
                t.transpose(&split, 1, 2)
            };
            let mut q = heads(self.q_proj.call(t, &x));
            let mut k = heads(self.k_proj.call(t, &x));
            let mut v = heads(self.v_proj.call(t, &x));
            if let Some([q_norm, k_norm]) = &self.qk_norms {
                q = q_norm.call(t, &q);
                k = k_norm.call(t, &k);
            }
            if self.liger_rope {
                [q, k] = t.liger_rope([&q, &k], [&shared.cos, &shared.sin]);
            } else {
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
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::capped_attention(t, shared.attn, &call, self.softcap);
            out = t.reshape(&out, [batch, seq, q.size(1) * self.head_dim]);
            out = self.o_proj.call(t, &out);
            (out, weights)
        })
    }
}
