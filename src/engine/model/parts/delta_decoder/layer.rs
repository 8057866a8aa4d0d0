//! Layers of decoders with gated DeltaNet (`Qwen3_5DecoderLayer`).

use super::attention::GatedAttention;
use super::config::DeltaDecoderConfig;
use super::delta_net::GatedDeltaNet;
use crate::model::decoder::layer::FeedForward;
use crate::model::decoder::mlp::Mlp;
use crate::model::decoder::sparse::SparseMlp;
use crate::model::parts::mixed_layers::{LayerContext, MixedLayer};
use crate::nn::{Builder, RmsNorm, RmsScale};
use crate::tape::{Tape, Tensor};

/// `Qwen3_5DecoderLayer`.
pub struct Layer {
    mixer: Mixer,
    mlp: Box<dyn FeedForward>,
    /// True if it has experts in place of an MLP.
    is_sparse: bool,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
}

/// The part of a layer that mixes positions.
enum Mixer {
    LinearAttention(Box<GatedDeltaNet>),
    SelfAttention(Box<GatedAttention>),
}

/// A norm of `1 + weight`.
pub(super) fn norm(b: &Builder, name: &'static str, width: u64) -> RmsNorm {
    RmsNorm::scaled(b, name, width, RmsScale::OnePlusWeight)
}

impl Layer {
    pub fn new(b: &Builder, c: &DeltaDecoderConfig, index: usize) -> Self {
        let t = b.tape();
        let experts = c.experts.as_ref().filter(|experts| experts.sparse[index]);
        let mlp = || -> Box<dyn FeedForward> {
            match experts {
                Some(experts) => Box::new(SparseMlp::new(b, (c.activation, false), experts)),
                None => Box::new(Mlp::of(b, [c.hidden, c.intermediate], false, c.activation)),
            }
        };
        Self {
            mixer: match c.is_linear[index] {
                true => Mixer::LinearAttention(Box::new(t.scope("linear_attn", || GatedDeltaNet::new(b, c)))),
                false => Mixer::SelfAttention(Box::new(t.scope("self_attn", || GatedAttention::new(b, c)))),
            },
            mlp: t.scope("mlp", mlp),
            is_sparse: experts.is_some(),
            input_layernorm: norm(b, "input_layernorm", c.hidden),
            post_attention_layernorm: norm(b, "post_attention_layernorm", c.hidden),
        }
    }

    /// Runs `_init_weights` at the end of the constructor of the model that contains this.
    pub fn initialise(&self, t: &Tape) {
        if let Mixer::LinearAttention(delta_net) = &self.mixer {
            delta_net.initialise(t);
        }
    }
}

impl MixedLayer for Layer {
    fn kind(&self) -> u64 {
        self.is_sparse.into()
    }

    fn forward(&self, t: &Tape, shared: &LayerContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let _weights;
        (h, _weights) = match &self.mixer {
            Mixer::LinearAttention(delta_net) => {
                let cache = shared.block.cache.as_ref();
                let out = delta_net.call(t, shared.padding.as_ref(), cache, h);
                (out, None)
            }
            Mixer::SelfAttention(attention) => attention.call(t, &shared.block, h),
        };
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = self.post_attention_layernorm.call(t, &h);
        h = self.mlp.call(t, h);
        t.add(&residual, &h)
    }
}
