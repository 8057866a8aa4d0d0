//! Configuration of decoders with gated DeltaNet.

use super::form::DeltaForm;
use crate::model::ModelError;
use crate::model::answers::Heads;
use crate::model::config::section::Section;
use crate::model::config::{Activation, Rope, limits};
use crate::model::decoder::ExpertsConfig;
use crate::model::libraries::AdapterMaps;
use crate::model::parts::mixed_layers::read_layers;

/// A decoder with gated DeltaNet in most layers and gated attention in the others.
///
/// Source: `configuration_*.py` of `transformers/models/{qwen3_5,qwen3_5_moe,qwen3_next}`.
#[derive(Debug, Clone, PartialEq)]
pub struct DeltaDecoderConfig {
    /// Family.
    pub form: &'static DeltaForm,
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the gated MLP; 0 in a family without any.
    pub intermediate: u64,
    /// Experts in place of the MLP of some or all layers.
    pub experts: Option<ExpertsConfig>,
    /// For each layer, true if it is gated DeltaNet.
    pub is_linear: Vec<bool>,
    /// Query heads of attention.
    pub heads: u64,
    /// Key and value heads of attention.
    pub kv_heads: u64,
    /// Elements of one head of attention.
    pub head_dim: u64,
    /// Rotary embedding.
    pub rope: Rope,
    /// Longest sequence that the model was made for.
    pub max_positions: u64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
    /// True if the projections of attention have biases.
    pub attention_bias: bool,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Activation of the MLP, and of the convolution.
    pub activation: Activation,
    /// Gated DeltaNet.
    pub delta: DeltaNetConfig,
}

/// Sizes of gated DeltaNet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeltaNetConfig {
    /// Query and key heads.
    pub key_heads: u64,
    /// Value heads, a multiple of `key_heads`.
    pub value_heads: u64,
    /// Elements of a query or key head.
    pub key_width: u64,
    /// Elements of a value head.
    pub value_width: u64,
    /// Positions that the convolution sees.
    pub kernel: u64,
}

impl DeltaNetConfig {
    /// Elements of all queries, or of all keys.
    pub const fn keys(&self) -> u64 {
        self.key_heads * self.key_width
    }

    /// Elements of all values.
    pub const fn values(&self) -> u64 {
        self.value_heads * self.value_width
    }

    fn read(s: &Section) -> Result<Self, ModelError> {
        let delta = Self {
            key_heads: s.size_or("linear_num_key_heads", 16, limits::HEADS)?,
            value_heads: s.size_or("linear_num_value_heads", 32, limits::HEADS)?,
            key_width: s.size_or("linear_key_head_dim", 128, limits::HEAD_DIM)?,
            value_width: s.size_or("linear_value_head_dim", 128, limits::HEAD_DIM)?,
            kernel: s.size_or("linear_conv_kernel_dim", 4, limits::COUNT)?,
        };
        s.divide(
            ("linear_num_value_heads", delta.value_heads),
            ("linear_num_key_heads", delta.key_heads),
        )?;
        Ok(delta)
    }
}

impl DeltaDecoderConfig {
    /// Reads `Qwen3_5TextConfig` and its variants.
    pub(crate) fn read(s: &Section, form: &'static DeltaForm) -> Result<Self, ModelError> {
        let heads = s.size("num_attention_heads", 16, limits::HEADS)?;
        let kv_heads = s.size_or("num_key_value_heads", form.kv_heads, limits::HEADS)?;
        s.divide(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
        let vocab = s.size("vocab_size", form.vocab, limits::VOCAB)?;
        s.padding(vocab)?;
        let hidden = s.size("hidden_size", form.hidden, limits::WIDTH)?;
        let is_linear = layers(s, form)?;
        let experts = |keys| ExpertsConfig::read(s, keys, [hidden, is_linear.len() as u64]);
        Ok(Self {
            form,
            vocab,
            hidden,
            intermediate: match form.intermediate {
                Some(default) => s.size("intermediate_size", default, limits::WIDTH * 4)?,
                None => 0,
            },
            experts: form.experts.map(experts).transpose()?,
            is_linear,
            heads,
            kv_heads,
            head_dim: s.size_or("head_dim", 256, limits::HEAD_DIM)?,
            rope: Rope::read(s, 10_000.0, 0.25)?,
            max_positions: s.size_or("max_position_embeddings", 32_768, limits::POSITIONS)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", false)?,
            attention_bias: s.flag("attention_bias", false)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            activation: s.activation("hidden_act", Activation::Silu)?,
            delta: DeltaNetConfig::read(s)?,
        })
    }

    /// Linear layers that peft finds for adapters.
    pub(crate) const fn adapters(&self) -> AdapterMaps {
        match self.experts {
            Some(_) => AdapterMaps::BesideExperts,
            None => AdapterMaps::Usual,
        }
    }

    /// Heads of attention.
    pub(crate) const fn attention_heads(&self) -> Heads {
        Heads {
            query: self.heads,
            key_value: self.kv_heads,
            width: self.head_dim,
        }
    }
}

/// Reads which layers are gated DeltaNet: `layer_types`, or all but each `full_attention_interval`-th.
fn layers(s: &Section, form: &DeltaForm) -> Result<Vec<bool>, ModelError> {
    read_layers(s, form.layers, "linear_attention", |count| {
        let interval = s.size_or("full_attention_interval", 4, limits::LAYERS)?;
        Ok((1..=count).map(|layer| !layer.is_multiple_of(interval)).collect())
    })
}
