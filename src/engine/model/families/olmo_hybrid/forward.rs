//! `OlmoHybridForCausalLM` (`transformers/models/olmo_hybrid/modeling_olmo_hybrid.py`).

use std::rc::Rc;

use super::config::OlmoHybridConfig;
use super::delta_net::GatedDeltaNet;
use crate::dtype::DType;
use crate::model::decoder::block::Block;
use crate::model::decoder::head::{Logits, head_for};
use crate::model::decoder::layer::{Layer as AttentionLayer, SelfAttention};
use crate::model::decoder::mlp::Mlp;
use crate::model::forward::Run;
use crate::model::parts::mixed_layers::{LayerContext, MixedDecoder, MixedLayer, MixedLm, run_layers};
use crate::nn::{Builder, Embedding, Numbered, RmsNorm, RmsScale, Rotary};
use crate::tape::{Component, Tape, Tensor};

/// `OlmoHybridModel`.
pub struct OlmoHybrid {
    embed_tokens: Embedding,
    layers: Vec<Numbered<Layer>>,
    is_linear: Vec<bool>,
    norm: RmsNorm,
    rotary: Option<Rotary>,
}

/// A layer of either kind.
enum Layer {
    /// `OlmoHybridAttentionDecoderLayer`.
    Attention(Box<AttentionLayer>),
    /// `OlmoHybridLinearAttentionDecoderLayer`.
    Linear(Box<LinearLayer>),
}

struct LinearLayer {
    mlp: Mlp,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
    linear_attn: GatedDeltaNet,
}

/// Makes the model.
pub fn model(b: &Builder, c: &OlmoHybridConfig) -> MixedLm<OlmoHybrid> {
    let model = b
        .tape()
        .component("model", Component::LanguageModel, || OlmoHybrid::new(b, c));
    MixedLm {
        lm_head: head_for(b, model.embed_tokens.weight(), c.text.tie_word_embeddings),
        model,
        logits: Logits::AsTheyAre,
    }
}

/// A norm whose weight is applied in fp32 (`OlmoHybridRMSNorm`).
fn norm(b: &Builder, name: &'static str, width: u64) -> RmsNorm {
    RmsNorm::scaled(b, name, width, RmsScale::WeightFirst)
}

impl OlmoHybrid {
    fn new(b: &Builder, c: &OlmoHybridConfig) -> Self {
        let text = &c.text;
        let embed_tokens = Embedding::new(b, "embed_tokens", text.vocab, text.hidden);
        let layer = |i: usize| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c, i)));
        let layers = (0..c.is_linear.len()).map(layer).collect();
        let norm = norm(b, "norm", text.hidden);
        let rotary = || Rotary::new(b, text.head_dim).dynamic(text.rope.is_dynamic());
        Self {
            embed_tokens,
            layers,
            is_linear: c.is_linear.clone(),
            norm,
            rotary: c.has_positions.then(|| rotary().initialised(b.tape())),
        }
    }
}

impl Layer {
    fn new(b: &Builder, c: &OlmoHybridConfig, index: usize) -> Self {
        let (t, text) = (b.tape(), &c.text);
        if !c.is_linear[index] {
            let attention = || {
                let made = SelfAttention::new(b, text, index);
                match c.has_positions {
                    true => made,
                    false => made.without_positions(),
                }
            };
            let mlp = || Box::new(Mlp::new(b, text)) as _;
            let layer = AttentionLayer::with_parts(b, text, &|| Box::new(attention()), &mlp);
            return Self::Attention(Box::new(layer));
        }
        let mlp = t.scope("mlp", || Mlp::new(b, text));
        let norms = ["input_layernorm", "post_attention_layernorm"].map(|name| norm(b, name, text.hidden));
        let [input_layernorm, post_attention_layernorm] = norms;
        let form = (text.hidden, text.activation);
        Self::Linear(Box::new(LinearLayer {
            mlp,
            input_layernorm,
            post_attention_layernorm,
            linear_attn: t.scope("linear_attn", || GatedDeltaNet::new(b, form, c.delta)),
        }))
    }
}

impl MixedLayer for Layer {
    const ALL_GET_TABLES: bool = false;

    fn forward(&self, t: &Tape, shared: &LayerContext, x: Tensor) -> Tensor {
        let layer = match self {
            Self::Attention(layer) => return layer.forward(t, &shared.block, x),
            Self::Linear(layer) => layer,
        };
        let residual = x.clone();
        let mut h = layer.input_layernorm.call(t, &x);
        drop(x);
        let cache = shared.block.cache.as_ref();
        h = layer.linear_attn.call(t, shared.padding.as_ref(), cache, &h);
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = layer.post_attention_layernorm.call(t, &h);
        h = layer.mlp.call(t, h);
        t.add(&residual, &h)
    }
}

impl MixedDecoder for OlmoHybrid {
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds))
    }

    fn forward_text(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        packed: Option<&Tensor>,
        padding: Option<&Tensor>,
    ) -> Tensor {
        let shared = LayerContext::new(t, run, &embeds, packed, padding, |position_ids| match &self.rotary {
            Some(rotary) => rotary.call_in(t, DType::F32, position_ids),
            // Without positions no layer reads the tables: the embeddings, which live as long, stand in their place.
            None => (embeds.clone(), embeds.clone()),
        });
        run_layers(t, run, (&self.layers, &self.is_linear), &self.norm, shared, embeds)
    }
}
