//! Blocks of IDEFICS's decoder (`transformers/models/idefics/modeling_idefics.py`).

use super::config::IdeficsConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::nn::{self, AttentionCall, Builder, KvCache, Linear, Rotary, T5LayerNorm};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// State that the blocks of text share.
pub struct TextContext {
    pub attn: Attention,
    pub mask: Option<Mask>,
    pub position_ids: Tensor,
    pub cache: Option<KvCache>,
}

/// State that the blocks that attend to images share.
pub struct ImageContext {
    pub attn: Attention,
    pub mask: Mask,
    /// Marks of the tokens that see an image, [batch, seq].
    pub gate: Tensor,
    /// Read by no block, but passed to each, so that a checkpointed block keeps it.
    pub _text_mask: Option<Mask>,
}

/// `IdeficsDecoderLayer`.
pub struct Layer {
    self_attn: IdeficsAttention,
    mlp: GatedMlp,
    input_layernorm: T5LayerNorm,
    post_attention_layernorm: T5LayerNorm,
    dropout: f64,
}

/// `IdeficsGatedCrossAttentionLayer`.
pub struct CrossLayer {
    alpha_cross_attn: Tensor,
    alpha_dense: Tensor,
    cross_attn: IdeficsAttention,
    mlp: GatedMlp,
    input_layernorm: T5LayerNorm,
    post_attention_layernorm: T5LayerNorm,
    dropout: f64,
}

/// `IdeficsAttention`: of text to itself, or to images (`is_cross_attention`).
struct IdeficsAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    rotary: Rotary,
    norms: Option<[T5LayerNorm; 2]>,
    heads: u64,
    dropout: f64,
}

/// Source of keys and values.
#[derive(Clone, Copy)]
enum Source<'a> {
    Text(&'a TextContext),
    /// Hidden states of the images, [batch, positions, width], beside what the blocks share.
    Images(&'a ImageContext, &'a Tensor),
}

/// `IdeficsMLP`.
struct GatedMlp {
    module: Module,
    gate_proj: Linear,
    down_proj: Linear,
    up_proj: Linear,
    activation: Activation,
}

impl Layer {
    pub fn new(b: &Builder, c: &IdeficsConfig) -> Self {
        let t = b.tape();
        let self_attn = t.scope("self_attn", || IdeficsAttention::new(b, c, c.hidden, false));
        let mlp = t.scope("mlp", || GatedMlp::new(b, c));
        Self {
            self_attn,
            mlp,
            input_layernorm: T5LayerNorm::new(b, "input_layernorm", c.hidden),
            post_attention_layernorm: T5LayerNorm::new(b, "post_attention_layernorm", c.hidden),
            dropout: c.dropout,
        }
    }

    pub fn forward(&self, t: &Tape, shared: &TextContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let (out, _weights) = self.self_attn.call(t, &h, Source::Text(shared));
        h = out;
        h = t.functional_dropout(&h, self.dropout);
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = self.post_attention_layernorm.call(t, &h);
        h = self.mlp.call(t, &h);
        h = t.functional_dropout(&h, self.dropout);
        t.add(&residual, &h)
    }
}

impl CrossLayer {
    pub fn new(b: &Builder, c: &IdeficsConfig) -> Self {
        let t = b.tape();
        let cross_attn = t.scope("cross_attn", || {
            IdeficsAttention::new(b, c, c.vision.hidden, c.qk_layer_norms)
        });
        let mlp = t.scope("mlp", || GatedMlp::new(b, c));
        let input_layernorm = T5LayerNorm::new(b, "input_layernorm", c.hidden);
        let post_attention_layernorm = T5LayerNorm::new(b, "post_attention_layernorm", c.hidden);
        let gate = |name| match c.gates_by_element {
            true => b.weight(name, [1, 1, c.hidden]),
            false => b.weight(name, [1]),
        };
        Self {
            alpha_cross_attn: gate("alpha_cross_attn"),
            alpha_dense: gate("alpha_dense"),
            cross_attn,
            mlp,
            input_layernorm,
            post_attention_layernorm,
            dropout: c.dropout,
        }
    }

    pub fn forward(&self, t: &Tape, (shared, images): (&ImageContext, &Tensor), x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let (out, _weights) = self.cross_attn.call(t, &h, Source::Images(shared, images));
        h = out;
        h = t.functional_dropout(&h, self.dropout);
        h = {
            let unseen = t.unsqueeze(&t.compute(&shared.gate, DType::Bool, "tokens without an image"), 2);
            t.masked_fill(&h, &unseen)
        };
        h = t.add(&residual, &nn::gated(t, &self.alpha_cross_attn, &h));
        let residual = h.clone();
        h = self.post_attention_layernorm.call(t, &h);
        h = self.mlp.call(t, &h);
        h = t.functional_dropout(&h, self.dropout);
        t.add(&residual, &nn::gated(t, &self.alpha_dense, &h))
    }
}

impl IdeficsAttention {
    /// Makes an attention whose keys and values come from states of width `source`.
    fn new(b: &Builder, c: &IdeficsConfig, source: u64, has_norms: bool) -> Self {
        let head_dim = c.hidden / c.heads;
        let linear = |name, input| Linear::new(b, name, input, c.hidden, false);
        let [q_proj, k_proj, v_proj] = [
            linear("q_proj", c.hidden),
            linear("k_proj", source),
            linear("v_proj", source),
        ];
        let o_proj = linear("o_proj", c.hidden);
        let rotary = Rotary::new(b, head_dim).initialised(b.tape());
        let norm = |name| T5LayerNorm::new(b, name, head_dim);
        Self {
            module: b.module(),
            q_proj,
            k_proj,
            v_proj,
            o_proj,
            rotary,
            norms: has_norms.then(|| [norm("q_layer_norm"), norm("k_layer_norm")]),
            heads: c.heads,
            dropout: c.dropout,
        }
    }

    /// Attends from `x`, [batch, seq, hidden], to itself or to images, and returns the weights too.
    fn call(&self, t: &Tape, x: &Tensor, source: Source<'_>) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let (attn, mask, states) = match source {
                Source::Text(shared) => (shared.attn, shared.mask.as_ref(), x),
                Source::Images(shared, images) => (shared.attn, Some(&shared.mask), images),
            };
            let project = |proj: &Linear, x: &Tensor| {
                let out = proj.call(t, x);
                let split = t.view(&out, [x.size(0), x.size(1), self.heads, out.last() / self.heads]);
                t.transpose(&split, 1, 2)
            };
            let mut q = project(&self.q_proj, x);
            let mut k = project(&self.k_proj, states);
            let mut v = project(&self.v_proj, states);
            // A local of the forward: cosines and sines live until it returns.
            let mut rotation = None;
            if let Source::Text(shared) = source {
                let (cos, sin) = self.rotary.call(t, &v, &shared.position_ids);
                let [wide_cos, wide_sin] = [&cos, &sin].map(|x| t.unsqueeze(x, 1));
                [q, k] = [&q, &k].map(|x| nn::apply_rotary(t, x, &wide_cos, &wide_sin));
                rotation = Some((cos, sin));
                if let Some(cache) = &shared.cache {
                    (k, v) = cache.update(t, &k, &v);
                }
            }
            if let Some([of_q, of_k]) = &self.norms {
                q = of_q.call(t, &q);
                k = of_k.call(t, &k);
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask,
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, attn, &call);
            out = t.reshape(&out, *x.shape());
            out = self.o_proj.call(t, &out);
            drop(rotation);
            (out, weights)
        })
    }
}

impl GatedMlp {
    fn new(b: &Builder, c: &IdeficsConfig) -> Self {
        let linear = |name, input, output| Linear::new(b, name, input, output, false);
        Self {
            module: b.module(),
            gate_proj: linear("gate_proj", c.hidden, c.intermediate),
            down_proj: linear("down_proj", c.intermediate, c.hidden),
            up_proj: linear("up_proj", c.hidden, c.intermediate),
            activation: c.activation,
        }
    }

    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let product = {
                let gate = nn::activate(t, self.activation, self.gate_proj.call(t, x));
                let up = self.up_proj.call(t, x);
                t.mul(&gate, &up)
            };
            self.down_proj.call(t, &product)
        })
    }
}
