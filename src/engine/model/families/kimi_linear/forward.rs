//! `KimiLinearForCausalLM` (`transformers/models/kimi_linear/modeling_kimi_linear.py`).

use std::rc::Rc;

use super::config::KimiLinearConfig;
use super::delta::DeltaAttention;
use crate::model::decoder::block::{Block, BlockContext};
use crate::model::decoder::head::{Logits, head_for};
use crate::model::decoder::latent::LatentLayer;
use crate::model::decoder::layer::{FeedForward, Layer as AttentionLayer};
use crate::model::decoder::mlp::Mlp;
use crate::model::decoder::sparse::SparseMlp;
use crate::model::forward::Run;
use crate::model::parts::mixed_layers::{LayerContext, MixedDecoder, MixedLayer, MixedLm, Returned, run_layers};
use crate::nn::{self, Builder, Embedding, Numbered, Pattern, RmsNorm};
use crate::tape::{Component, Tape, Tensor};

/// `KimiLinearModel`.
pub struct KimiLinear {
    embed_tokens: Embedding,
    layers: Vec<Numbered<Layer>>,
    is_linear: Vec<bool>,
    norm: RmsNorm,
}

/// `KimiLinearDecoderLayer`.
struct Layer {
    mixer: Mixer,
    /// True if the layer has experts.
    is_sparse: bool,
}

/// A layer of either kind.
enum Mixer {
    Attention(Box<AttentionLayer>),
    Linear(Box<LinearLayer>),
}

struct LinearLayer {
    self_attn: DeltaAttention,
    mlp: Box<dyn FeedForward>,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
}

/// Makes the model.
pub fn model(b: &Builder, c: &KimiLinearConfig) -> MixedLm<KimiLinear> {
    let make = || KimiLinear::new(b, c);
    let model = b.tape().component("model", Component::LanguageModel, make);
    MixedLm {
        lm_head: head_for(b, model.embed_tokens.weight(), c.text.tie_word_embeddings),
        model,
        logits: Logits::AsTheyAre,
    }
}

impl KimiLinear {
    fn new(b: &Builder, c: &KimiLinearConfig) -> Self {
        let embed_tokens = Embedding::new(b, "embed_tokens", c.text.vocab, c.text.hidden);
        let layer = |i: usize| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c, i)));
        let layers = (0..c.is_linear.len()).map(layer).collect();
        Self {
            embed_tokens,
            layers,
            is_linear: c.is_linear.clone(),
            norm: RmsNorm::new(b, "norm", c.text.hidden),
        }
    }
}

impl Layer {
    fn new(b: &Builder, c: &KimiLinearConfig, index: usize) -> Self {
        let (t, text) = (b.tape(), &c.text);
        let experts = text.experts.as_ref().filter(|experts| experts.sparse[index]);
        let is_sparse = experts.is_some();
        if !c.is_linear[index] {
            let layer = Box::new(LatentLayer::new(b, text, index));
            return Self {
                mixer: Mixer::Attention(layer),
                is_sparse,
            };
        }
        let form = (text.hidden, text.activation);
        let self_attn = t.scope("self_attn", || DeltaAttention::new(b, form, c.delta));
        let mlp = t.scope("mlp", || -> Box<dyn FeedForward> {
            match experts {
                Some(experts) => Box::new(SparseMlp::new(b, (text.activation, text.mlp_bias), experts)),
                None => Box::new(Mlp::new(b, text)),
            }
        });
        let norm = |name| RmsNorm::new(b, name, text.hidden);
        let layer = Box::new(LinearLayer {
            self_attn,
            mlp,
            input_layernorm: norm("input_layernorm"),
            post_attention_layernorm: norm("post_attention_layernorm"),
        });
        Self {
            mixer: Mixer::Linear(layer),
            is_sparse,
        }
    }
}

impl MixedLayer for Layer {
    const ALL_GET_TABLES: bool = false;

    fn kind(&self) -> u64 {
        u64::from(self.is_sparse)
    }

    fn forward(&self, t: &Tape, shared: &LayerContext, x: Tensor) -> Tensor {
        let layer = match &self.mixer {
            Mixer::Attention(layer) => return layer.forward(t, &shared.block, x),
            Mixer::Linear(layer) => layer,
        };
        let residual = x.clone();
        let mut h = layer.input_layernorm.call(t, &x);
        drop(x);
        let cache = shared.block.cache.as_ref();
        h = layer.self_attn.call(t, shared.padding.as_ref(), cache, &h);
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = layer.post_attention_layernorm.call(t, &h);
        h = layer.mlp.call(t, h);
        t.add(&residual, &h)
    }
}

impl MixedDecoder for KimiLinear {
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
        let cache = run.cache(&[]);
        let position_ids = packed.cloned().unwrap_or_else(|| run.position_ids(t, &embeds));
        let mask = nn::text_mask(t, run.attn, &embeds, packed, Pattern::Causal);
        let padding = padding.and_then(|padding| nn::recurrent_mask(t, padding));
        let shared = LayerContext {
            block: BlockContext {
                attn: run.attn,
                mask,
                // Without positions no layer reads tables: the embeddings, which live as long, stand in their place.
                cos: embeds.clone(),
                sin: embeds.clone(),
                splits_last: false,
                cache,
                position_ids: Some(position_ids),
            },
            padding,
            returned: Returned::default(),
        };
        run_layers(t, run, (&self.layers, &self.is_linear), &self.norm, shared, embeds)
    }
}
