//! Decoders like Llama's (`transformers/models/{llama,mistral,qwen2,…}/modeling_*.py`).

use std::rc::Rc;

use super::{Batch, Forward, Output, Run, phi3};
use crate::dtype::DType;
use crate::model::config::{Activation, DecoderConfig};
use crate::nn::{self, AttentionCall, Builder, Embedding, KvCache, Linear, MropeLayout, Pattern, RmsNorm, Rotary};
use crate::setup::{Attention, Loss};
use crate::tape::{Component, Mask, Tape, Tensor};

/// `LlamaForCausalLM` and its variants in other families.
pub struct CausalLm {
    model: Decoder,
    lm_head: Option<Linear>,
}

/// `LlamaModel` and its variants: embeddings, blocks, last norm.
pub struct Decoder {
    /// Token embedding; `None` after the first stage of a pipeline.
    embed_tokens: Option<Embedding>,
    layers: Vec<Rc<dyn Block>>,
    /// Index of the first of these blocks in the whole model.
    first: usize,
    /// Number of positions that each block sees; `None` if it sees all.
    windows: Vec<Option<u64>>,
    /// True if all blocks get the first one's mask, and no other is made (Mistral, Phi-3).
    one_mask: bool,
    /// Last norm; `None` before the last stage of a pipeline.
    norm: Option<RmsNorm>,
    rotary: Rotary,
}

/// A block of a decoder.
pub trait Block {
    /// Runs the block, [batch, seq, hidden] → [batch, seq, hidden].
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor;
}

/// Llama's block: attention and a gated MLP, each after a norm and with a residual connection.
pub struct Layer {
    self_attn: SelfAttention,
    mlp: Mlp,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
    /// Dropout after attention and after the MLP (Seed-OSS).
    dropout: f64,
}

struct SelfAttention {
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    /// Norms of queries and keys, over each head.
    qk_norm: Option<[RmsNorm; 2]>,
    head_dim: u64,
    dropout: f64,
}

/// `LlamaMLP` and its variants: a gated pair of projections and one back.
pub struct Mlp {
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
    activation: Activation,
}

/// State that all blocks of one forward share.
#[derive(Clone)]
pub struct BlockContext {
    pub attn: Attention,
    pub mask: Option<Mask>,
    pub cos: Tensor,
    pub sin: Tensor,
    /// True if all three projections are computed before any is split into heads (Qwen2-VL, Qwen2.5-VL and
    /// Llama-3.2-Vision).
    pub splits_last: bool,
    /// Cache of keys and values for generation.
    pub cache: Option<KvCache>,
    /// Passed to every block, so a checkpointed block keeps it.
    pub _position_ids: Option<Tensor>,
}

/// Returns true if the blocks of this file simulate the configuration.
pub fn is_simulated(c: &DecoderConfig) -> bool {
    !c.is_gemma()
}

impl CausalLm {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        // If GPUs share the linear maps of a text model, they also share its head, and the embedding tied to it.
        let table = if c.tie_word_embeddings {
            Embedding::shared
        } else {
            Embedding::new
        };
        let model = b.tape().component("model", Component::LanguageModel, || {
            Decoder::with_table(b, c, &|| table(b, "embed_tokens", c.vocab, c.hidden))
        });
        let lm_head = b.tape().stage().is_last().then(|| {
            b.tape().component("", Component::Head, || match &model.embed_tokens {
                Some(table) if c.tie_word_embeddings => Linear::gathered_tied(b, "lm_head", table.weight()),
                _ => Linear::gathered(b, "lm_head", c.hidden, c.vocab),
            })
        });
        Self { model, lm_head }
    }
}

/// Makes the output projection, tied to the token embedding or separate; `None` before the last stage of a pipeline.
pub fn head(b: &Builder, c: &DecoderConfig, model: &Decoder) -> Option<Linear> {
    let table = model.embed_tokens.as_ref()?;
    b.tape().stage().is_last().then(|| head_for(b, c, table.weight()))
}

/// Makes the output projection for a token embedding with the table `embedding`, tied to it or separate.
pub fn head_for(b: &Builder, c: &DecoderConfig, embedding: &Tensor) -> Linear {
    b.tape().component("", Component::Head, || {
        if c.tie_word_embeddings {
            Linear::tied(b, "lm_head", embedding)
        } else {
            Linear::new(b, "lm_head", c.hidden, c.vocab, false)
        }
    })
}

/// Logits and loss of the last hidden states; in a stage of a pipeline before the last, the hidden states for the next
/// stage.
pub fn logits_and_loss<'a>(t: &Tape, lm_head: impl Into<Option<&'a Linear>>, h: Tensor, batch: &Batch) -> Output {
    let Some(lm_head) = lm_head.into() else {
        return Output {
            loss: h,
            held: Vec::new(),
        };
    };
    if !t.stage().is_whole() {
        return t.component("", Component::Head, || Output {
            loss: t.scope("lm_head", || lm_head.forward(t, &h)),
            held: Vec::new(),
        });
    }
    capped_logits_and_loss(t, lm_head, h, batch, false)
}

/// Logits of the last position (`logits_to_keep=1`), [batch, 1, vocab].
pub fn last_logits(t: &Tape, lm_head: &Linear, h: &Tensor) -> Tensor {
    capped_last_logits(t, lm_head, h, false)
}

/// Logits of the last position, [batch, 1, vocab], soft-capped if `softcap`.
pub fn capped_last_logits(t: &Tape, lm_head: &Linear, h: &Tensor, softcap: bool) -> Tensor {
    let last = t.slice(h, 1, 1);
    t.component("", Component::Head, || {
        let logits = t.scope("lm_head", || lm_head.forward(t, &last));
        if softcap { nn::soft_cap(t, logits) } else { logits }
    })
}

/// Logits and loss of the last hidden states; logits are soft-capped if `softcap`.
pub fn capped_logits_and_loss(t: &Tape, lm_head: &Linear, h: Tensor, batch: &Batch, softcap: bool) -> Output {
    let Some(labels) = &batch.labels else {
        return Output {
            loss: capped_last_logits(t, lm_head, &h, softcap),
            held: Vec::new(),
        };
    };
    if batch.loss == Loss::FusedLinear {
        return t.component("", Component::Head, || Output {
            loss: t.scope("loss", || nn::fused_causal_lm_loss(t, &h, lm_head, labels)),
            held: Vec::new(),
        });
    }
    t.component("", Component::Head, || {
        let mut logits = t.scope("lm_head", || lm_head.forward(t, &h));
        if softcap {
            logits = nn::soft_cap(t, logits);
        }
        let loss = t.scope("loss", || nn::causal_lm_loss(t, &logits, labels));
        // The hidden states are a local of the model's forward, freed when it returns.
        drop(h);
        Output {
            loss,
            held: vec![logits],
        }
    })
}

impl Forward for CausalLm {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        Batch::of_text(t, run)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let h = t.component("model", Component::LanguageModel, || {
            let embeds = match (&batch.received, &batch.ids) {
                (Some(received), _) => received.clone(),
                (None, Some(ids)) => self.model.embed(t, run, ids),
                (None, None) => unreachable!("a text batch has ids"),
            };
            self.model.forward_packed(t, run, embeds, batch.positions.as_ref())
        });
        logits_and_loss(t, self.lm_head.as_ref(), h, batch)
    }

    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        Some(self.model.next_logits(t, run, self.lm_head.as_ref()?, ids))
    }
}

impl Decoder {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        Self::with_table(b, c, &|| Embedding::new(b, "embed_tokens", c.vocab, c.hidden))
    }

    /// Makes the part of the decoder that belongs to the tape's pipeline stage.
    fn with_table(b: &Builder, c: &DecoderConfig, table: &dyn Fn() -> Embedding) -> Self {
        let t = b.tape();
        let stage = t.stage();
        let layers = stage.layers(c.layers as usize);
        Self {
            embed_tokens: stage.is_first().then(table),
            first: layers.start,
            windows: c.windows[layers.clone()].to_vec(),
            layers: layers.map(|i| t.layer("layers", i, || block(b, c))).collect(),
            one_mask: c.family.has_one_mask(),
            norm: stage.is_last().then(|| RmsNorm::new(b, "norm", c.hidden)),
            rotary: Rotary::new(b, rotary_width(c)).initialised(t),
        }
    }

    /// Token ids [batch, seq] → [batch, seq, hidden].
    pub fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        let Some(table) = &self.embed_tokens else {
            unreachable!("a stage without a table is given hidden states")
        };
        t.scope("embed_tokens", || run.embedded(t, table.forward(t, ids)))
    }

    /// Embeddings [batch, seq, hidden] → last hidden states of the same shape.
    pub fn forward(&self, t: &Tape, run: &Run, embeds: Tensor) -> Tensor {
        self.forward_packed(t, run, embeds, None)
    }

    /// Returns the logits [batch, 1, vocab] after one new token of each sample, ids [batch, 1].
    pub fn next_logits(&self, t: &Tape, run: &Run, lm_head: &Linear, ids: &Tensor) -> Tensor {
        let embeds = self.embed(t, run, ids);
        let h = self.forward(t, run, embeds);
        last_logits(t, lm_head, &h)
    }

    /// Embeddings [batch, seq, hidden] → last hidden states, with samples packed into one row at the positions
    /// `packed`, [1, seq].
    pub fn forward_packed(&self, t: &Tape, run: &Run, embeds: Tensor, packed: Option<&Tensor>) -> Tensor {
        let cache = run.cache(&self.windows);
        let position_ids = packed.cloned().unwrap_or_else(|| nn::position_ids(t, &embeds));
        let masks = self.masks(t, run, &embeds, packed);
        self.at(t, run, embeds, position_ids, masks, cache)
    }

    /// Runs all blocks at positions [batch, seq], with the masks of full and of sliding ones.
    fn at(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        position_ids: Tensor,
        (mask, sliding_mask): (Option<Mask>, Option<Mask>),
        cache: Option<KvCache>,
    ) -> Tensor {
        let (cos, sin) = t.scope("rotary_emb", || self.rotary.forward(t, &embeds, &position_ids));
        let shared = BlockContext {
            attn: run.attn,
            mask,
            cos,
            sin,
            splits_last: false,
            cache,
            _position_ids: Some(position_ids),
        };
        self.blocks(t, run, embeds, (shared, sliding_mask), (0, |_: &Tape, _, h| h))
    }

    /// Runs all blocks at positions [3, batch, seq] of time, height and width; `after` is called with each block's
    /// index and output, and changes the outputs of the first `after.0` blocks.
    pub fn forward_multimodal(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        (position_ids, layout): (&Tensor, MropeLayout),
        after: (usize, impl Fn(&Tape, usize, Tensor) -> Tensor),
    ) -> Tensor {
        let cache = run.cache(&self.windows);
        let (mask, sliding_mask) = self.masks(t, run, &embeds, None);
        let (cos, sin) = t.scope("rotary_emb", || {
            self.rotary.multimodal(t, &embeds, position_ids, layout)
        });
        let shared = BlockContext {
            attn: run.attn,
            mask,
            cos,
            sin,
            splits_last: layout == MropeLayout::Sections,
            cache,
            _position_ids: None,
        };
        self.blocks(t, run, embeds, (shared, sliding_mask), after)
    }

    /// Makes the masks of blocks that see all positions, and of sliding blocks.
    fn masks(&self, t: &Tape, run: &Run, embeds: &Tensor, packed: Option<&Tensor>) -> (Option<Mask>, Option<Mask>) {
        let mask = |pattern| nn::text_mask(t, run.attn, embeds, packed, pattern);
        let window = self.windows.iter().copied().flatten().next();
        let full = match window {
            Some(_) if self.one_mask => None,
            _ => mask(Pattern::Causal),
        };
        (full, window.and_then(|window| mask(Pattern::Sliding(window))))
    }

    /// Kinds of blocks, for layer deduplication: blocks differ in their window, and in belonging to the first
    /// `changed`. With a cache and mixed windows each block is a kind of its own, since the cache looks up its window
    /// by index.
    fn kinds(&self, has_cache: bool, changed: usize) -> Vec<u64> {
        let by_number = has_cache && self.windows.iter().any(|window| *window != self.windows[0]);
        let kind = |(i, window): (usize, &Option<u64>)| match by_number {
            true => i as u64,
            false => window.unwrap_or(0) << 1 | u64::from(i < changed),
        };
        self.windows.iter().enumerate().map(kind).collect()
    }

    fn blocks(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        (shared, sliding_mask): (BlockContext, Option<Mask>),
        (changed, after): (usize, impl Fn(&Tape, usize, Tensor) -> Tensor),
    ) -> Tensor {
        let sliding = Rc::new(BlockContext {
            mask: sliding_mask,
            ..shared.clone()
        });
        let full = Rc::new(shared);
        let mut h = embeds.clone();
        let mut _block_output = embeds.clone();
        let kinds = self.kinds(full.cache.is_some(), changed);
        t.stack(&kinds, &mut |i| {
            let shared = if self.windows[i].is_some() { &sliding } else { &full };
            let (layer, shared) = (self.layers[i].clone(), shared.clone());
            let forward = move |t: &Tape, x: Tensor| layer.forward(t, &shared, x);
            let input = std::mem::replace(&mut h, embeds.clone());
            let output = t.layer("layers", self.first + i, || {
                if run.checkpoints(t) {
                    t.checkpoint(input, Rc::new(forward))
                } else {
                    forward(t, input)
                }
            });
            // A block's output has a variable of its own, which lives until the next one replaces it.
            _block_output = output.clone();
            h = after(t, i, output);
        });
        let out = match &self.norm {
            Some(norm) => t.scope("norm", || norm.forward(t, &h)),
            None => h,
        };
        drop(embeds);
        out
    }
}

/// Makes a block of the family's kind.
fn block(b: &Builder, c: &DecoderConfig) -> Rc<dyn Block> {
    if c.fused_projections() {
        Rc::new(phi3::Layer::new(b, c))
    } else {
        Rc::new(Layer::new(b, c))
    }
}

/// Elements of each head that are rotated.
fn rotary_width(c: &DecoderConfig) -> u64 {
    if c.fused_projections() {
        c.rope.rotated(c.head_dim)
    } else {
        c.head_dim
    }
}

impl Layer {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let t = b.tape();
        Self {
            self_attn: t.scope("self_attn", || SelfAttention::new(b, c)),
            mlp: t.scope("mlp", || Mlp::new(b, c)),
            input_layernorm: RmsNorm::new(b, "input_layernorm", c.hidden),
            post_attention_layernorm: RmsNorm::new(b, "post_attention_layernorm", c.hidden),
            dropout: c.residual_dropout,
        }
    }
}

impl Block for Layer {
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = t.scope("input_layernorm", || self.input_layernorm.forward(t, &x));
        drop(x);
        let (out, _weights) = t.scope("self_attn", || self.self_attn.forward(t, shared, h));
        h = out;
        if self.dropout > 0.0 {
            h = t.scope("self_attn", || t.dropout(&h, self.dropout));
        }
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = t.scope("post_attention_layernorm", || {
            self.post_attention_layernorm.forward(t, &h)
        });
        h = t.scope("mlp", || self.mlp.forward(t, h));
        if self.dropout > 0.0 {
            h = t.scope("mlp", || t.dropout(&h, self.dropout));
        }
        t.add(&residual, &h)
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        Self {
            q_proj: Linear::columns(b, "q_proj", c.hidden, q, c.qkv_bias),
            k_proj: Linear::columns(b, "k_proj", c.hidden, kv, c.qkv_bias),
            v_proj: Linear::columns(b, "v_proj", c.hidden, kv, c.qkv_bias),
            o_proj: Linear::rows(b, "o_proj", q, c.hidden, c.o_bias),
            qk_norm: c
                .qk_norm
                .then(|| ["q_norm", "k_norm"].map(|name| RmsNorm::new(b, name, c.head_dim))),
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }

    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        let [batch, seq] = [x.size(0), x.size(1)];
        let heads = |x: Tensor, norm: Option<usize>| {
            let mut split = t.view(&x, [batch, seq, x.last() / self.head_dim, self.head_dim]);
            if let (Some(i), Some(norms)) = (norm, &self.qk_norm) {
                split = t.scope(["q_norm", "k_norm"][i], || norms[i].forward(t, &split));
            }
            t.transpose(&split, 1, 2)
        };
        let project = |name, proj: &Linear| t.scope(name, || proj.forward(t, &x));
        let (mut q, mut k, mut v);
        if shared.splits_last {
            q = project("q_proj", &self.q_proj);
            k = project("k_proj", &self.k_proj);
            let unsplit = project("v_proj", &self.v_proj);
            q = heads(q, Some(0));
            k = heads(k, Some(1));
            v = heads(unsplit, None);
        } else {
            q = heads(project("q_proj", &self.q_proj), Some(0));
            k = heads(project("k_proj", &self.k_proj), Some(1));
            v = heads(project("v_proj", &self.v_proj), None);
        }
        {
            let cos = t.unsqueeze(&shared.cos, 1);
            let sin = t.unsqueeze(&shared.sin, 1);
            let turned = (nn::apply_rotary(t, &q, &cos, &sin), nn::apply_rotary(t, &k, &cos, &sin));
            (q, k) = turned;
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
        let (mut out, weights) = nn::attention(t, shared.attn, &call);
        out = t.reshape(&out, [batch, seq, q.size(1) * self.head_dim]);
        out = t.scope("o_proj", || self.o_proj.forward(t, &out));
        (out, weights)
    }
}

impl Mlp {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        Self {
            gate_proj: Linear::columns(b, "gate_proj", c.hidden, c.intermediate, c.mlp_bias),
            up_proj: Linear::columns(b, "up_proj", c.hidden, c.intermediate, c.mlp_bias),
            down_proj: Linear::rows(b, "down_proj", c.intermediate, c.hidden, c.mlp_bias),
            activation: c.activation,
        }
    }

    pub fn forward(&self, t: &Tape, x: Tensor) -> Tensor {
        let product = {
            let gate = nn::activate(
                t,
                self.activation,
                t.scope("gate_proj", || self.gate_proj.forward(t, &x)),
            );
            let up = t.scope("up_proj", || self.up_proj.forward(t, &x));
            t.mul(&gate, &up)
        };
        t.scope("down_proj", || self.down_proj.forward(t, &product))
    }
}
