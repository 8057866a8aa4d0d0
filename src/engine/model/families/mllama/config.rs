//! Configuration of Llama-3.2-Vision.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, PatchGrid, limits};
use crate::model::decoder::{DecoderConfig, DecoderDefaults};
use crate::model::families::decoders::llama;

/// Llama-3.2-Vision: a tower of local and global blocks on up to four tiles, one linear projection,
/// a Llama decoder with gated cross-attention layers in between.
///
/// Source: `transformers/models/mllama/configuration_mllama.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct MllamaConfig {
    /// The vision tower.
    pub vision: MllamaVisionConfig,
    /// The language model.
    pub text: MllamaTextConfig,
}

/// Llama-3.2-Vision's language model.
#[derive(Debug, Clone, PartialEq)]
pub struct MllamaTextConfig {
    /// Sizes; `layers` counts self- and cross-attention layers together. Its head is never tied, and its embedding has 8
    /// more entries than `vocab`.
    pub decoder: DecoderConfig,
    /// Layers that are cross-attention.
    pub cross_attention_layers: Vec<u64>,
    /// Dropout of attention probabilities.
    pub dropout: f64,
}

/// Llama-3.2-Vision's tower.
#[derive(Debug, Clone, PartialEq)]
pub struct MllamaVisionConfig {
    /// Sizes of the local blocks.
    pub shape: EncoderShape,
    /// Gated global blocks after the local ones.
    pub global_layers: u64,
    /// Tile and patch sizes.
    pub grid: PatchGrid,
    /// Most tiles of an image.
    pub max_tiles: u64,
    /// Local blocks whose outputs are concatenated with the last along the width.
    pub intermediate_layers: Vec<u64>,
    /// Arrangements of tiles that have embeddings of their own.
    pub aspect_ratios: u64,
    /// Width of the output: (1 + intermediate layers) × hidden.
    pub output: u64,
    /// Activation of the MLP.
    pub activation: Activation,
}

/// `MllamaTextConfig`.
const TEXT_DEFAULTS: DecoderDefaults = DecoderDefaults {
    vocab: 128_256,
    intermediate: 14_336,
    layers: 40,
    kv_heads: Some(8),
    max_positions: 131_072,
    theta: 5e5,
    ..DecoderDefaults::LLAMA
};

impl MllamaTextConfig {
    const CROSS: [u64; 8] = [3, 8, 13, 18, 23, 28, 33, 38];

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let mut decoder = DecoderConfig::read_with(s, &llama::FAMILY, &TEXT_DEFAULTS)?;
        decoder.tie_word_embeddings = false;
        // `MllamaTextSelfAttention` and `MllamaTextMLP` have no biases, regardless of the file.
        (decoder.qkv_bias, decoder.o_bias, decoder.mlp_bias) = (false, false, false);
        let cross = s
            .optional_indices("cross_attention_layers", limits::LAYERS)?
            .unwrap_or(Self::CROSS.to_vec());
        Ok(Self {
            // transformers checks for each layer if the list names it, so indices past the end are ignored.
            cross_attention_layers: cross.into_iter().filter(|i| *i < decoder.layers).collect(),
            dropout: s.probability("dropout", 0.0)?,
            decoder,
        })
    }
}

impl MllamaConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = MllamaTextConfig::read(&s.nested("text_config", "Llama-3.2-Vision language")?)?;
        Ok(Self {
            vision: MllamaVisionConfig::read(&s.nested("vision_config", "Llama-3.2-Vision tower")?)?,
            text,
        })
    }
}

impl MllamaVisionConfig {
    /// Reads `intermediate_layers_indices`: indices of the tower's blocks, at least one.
    fn joined(s: &Section, layers: u64) -> Result<Vec<u64>, ModelError> {
        let key = "intermediate_layers_indices";
        let joined = s
            .optional_indices(key, layers - 1)?
            .unwrap_or_else(|| vec![3, 7, 15, 23, 30]);
        if joined.is_empty() || joined.iter().any(|&block| block >= layers) {
            let given = joined.into();
            return Err(s.wrong(
                key,
                &given,
                &format!("at least one of its {layers} blocks, counted from 0"),
            ));
        }
        Ok(joined)
    }

    fn read(s: &Section) -> Result<Self, ModelError> {
        let layers = s.size("num_hidden_layers", 32, limits::LAYERS)?;
        let hidden = s.size("hidden_size", 1280, limits::WIDTH)?;
        let heads = s.size_of_either(["attention_heads", "num_attention_heads"], 16, limits::HEADS)?;
        s.divide(("hidden_size", hidden), ("attention_heads", heads))?;
        let intermediate = s.size("intermediate_size", 5120, limits::WIDTH * 4)?;
        let joined = Self::joined(s, layers)?;
        Ok(Self {
            shape: EncoderShape {
                hidden,
                intermediate,
                layers,
                heads,
            },
            global_layers: s.size_or("num_global_layers", 8, limits::LAYERS)?,
            grid: PatchGrid::read(s, 448, 14)?,
            max_tiles: s.size_or("max_num_tiles", 4, limits::COUNT)?,
            intermediate_layers: joined,
            aspect_ratios: s.optional_len("supported_aspect_ratios")?.unwrap_or(8),
            output: s.size_or("vision_output_dim", 7680, limits::WIDTH)?,
            activation: s.activation("hidden_act", Activation::Gelu)?,
        })
    }
}
