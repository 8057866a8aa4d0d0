//! Configuration of IDEFICS.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits, rope};
use crate::model::parts::clip_vision::ClipVisionConfig;

/// IDEFICS: CLIP's tower, and a decoder whose blocks attend to its patches through gates.
///
/// Source: `transformers/models/idefics/configuration_idefics.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct IdeficsConfig {
    /// The vision tower.
    pub vision: ClipVisionConfig,
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Longest sequence that the model was made for.
    pub max_positions: u64,
    /// Activation of the gate.
    pub activation: Activation,
    /// Dropout of hidden states and of attention probabilities.
    pub dropout: f64,
    /// Blocks of text from one gated cross-attention to the next.
    pub cross_interval: u64,
    /// True if queries and keys of attention to images are normalised.
    pub qk_layer_norms: bool,
    /// True if a gate has a factor for each element of the hidden states, false if one for all (`alpha_type`).
    pub gates_by_element: bool,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
    /// Parts that the constructor freezes.
    pub frozen: FrozenParts,
}

/// Parts that the constructor freezes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrozenParts {
    /// Token embedding, blocks of text and last norm.
    pub text: bool,
    /// The head.
    pub head: bool,
    /// The vision tower.
    pub vision: bool,
}

impl IdeficsConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        simulated(s)?;
        let hidden = s.size("hidden_size", 4096, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 32, limits::HEADS)?;
        s.divide(("hidden_size", hidden), ("2 × num_attention_heads", 2 * heads))?;
        let vocab = s.size("vocab_size", 32_000, limits::VOCAB)?;
        s.padding(vocab)?;
        let layers = s.size("num_hidden_layers", 32, limits::LAYERS)?;
        let cross_interval = s.size_or("cross_layer_interval", 1, limits::LAYERS)?;
        s.divide(("num_hidden_layers", layers), ("cross_layer_interval", cross_interval))?;
        Ok(Self {
            vision: vision(&s.nested("vision_config", "IDEFICS vision")?)?,
            vocab,
            hidden,
            intermediate: s.size("intermediate_size", 11_008, limits::WIDTH * 4)?,
            layers,
            heads,
            max_positions: s.size_or("max_position_embeddings", 2048, limits::POSITIONS)?,
            activation: s.activation("hidden_act", Activation::Silu)?,
            dropout: s.probability("dropout", 0.0)?,
            cross_interval,
            qk_layer_norms: s.flag("qk_layer_norms", false)?,
            gates_by_element: s.optional_text("alpha_type")? == Some("vector"),
            tie_word_embeddings: s.flag("tie_word_embeddings", false)?,
            frozen: FrozenParts {
                text: s.flag("freeze_text_layers", true)?,
                head: s.flag("freeze_lm_head", false)?,
                vision: s.flag("freeze_vision_layers", true)?,
            },
        })
    }
}

/// Refuses what is not simulated.
fn simulated(s: &Section) -> Result<(), ModelError> {
    s.only("use_resampler", "false: its perceiver is not simulated", |v| v == false)?;
    s.only("additional_vocab_size", "0: a second embedding is not simulated", |v| {
        v == 0
    })?;
    s.only("alpha_type", "\"float\" or \"vector\"", |v| {
        v == "float" || v == "vector"
    })?;
    s.only("alpha_initializer", "\"zeros\" or \"ones\"", |v| {
        v == "zeros" || v == "ones"
    })?;
    for key in ["freeze_text_module_exceptions", "freeze_vision_module_exceptions"] {
        s.only(key, "an empty list: modules that stay trained are not simulated", |v| {
            v.as_array().is_some_and(Vec::is_empty)
        })?;
    }
    rope::read_static(s, 10_000.0).map(|_| ())
}

/// Reads CLIP's tower with IDEFICS's keys and defaults.
fn vision(s: &Section) -> Result<ClipVisionConfig, ModelError> {
    let hidden = s.size_of_either(["embed_dim", "hidden_size"], 768, limits::WIDTH)?;
    let heads = s.size("num_attention_heads", 16, limits::HEADS)?;
    s.divide(("embed_dim", hidden), ("num_attention_heads", heads))?;
    let image = s.side("image_size", 224, limits::PIXELS)?;
    Ok(ClipVisionConfig {
        hidden,
        intermediate: s.size("intermediate_size", 5120, limits::WIDTH * 4)?,
        layers: s.size("num_hidden_layers", 32, limits::LAYERS)?,
        heads,
        channels: s.size_or("num_channels", 3, limits::COUNT)?,
        image,
        patch: s.side("patch_size", 14, image)?,
        activation: s.activation("hidden_act", Activation::Gelu)?,
        attention_dropout: s.probability("attention_dropout", 0.0)?,
        projection: 0,
    })
}
