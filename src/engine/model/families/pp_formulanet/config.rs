//! Configuration of PP-FormulaNet.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::parts::bart::{AttentionForm, BlockConfig};
use crate::model::parts::sam_vision::SamVisionConfig;

/// PP-FormulaNet: SAM's tower, two convolutions and two linear layers, and MBart's decoder, which attends to what they
/// make.
///
/// Source: `transformers/models/pp_formulanet/configuration_pp_formulanet.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct PpFormulaNetConfig {
    /// The vision tower.
    pub vision: SamVisionConfig,
    /// Channels of the first and of the second convolution after it.
    pub channels: [u64; 2],
    /// The decoder.
    pub text: TextConfig,
}

/// The decoder.
#[derive(Debug, Clone, PartialEq)]
pub struct TextConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Blocks.
    pub layers: u64,
    /// Longest sequence.
    pub positions: u64,
    /// Form and sizes of a block.
    pub(crate) block: BlockConfig,
}

impl PpFormulaNetConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = TextConfig::read(&s.nested_or_empty("text_config", "PP-FormulaNet's decoder")?)?;
        let v = s.nested_or_empty("vision_config", "PP-FormulaNet's vision")?;
        let vision = SamVisionConfig::read_of_side(&v, None, 512)?;
        let width = |key, default| v.size_of_class(key, default, limits::WIDTH * 4);
        v.equal(
            ("post_conv_in_channels", width("post_conv_in_channels", 256)?),
            ("output_channels", vision.output_channels),
        )?;
        v.equal(
            ("decoder_hidden_size", width("decoder_hidden_size", 512)?),
            ("d_model", text.block.hidden),
        )?;
        Ok(Self {
            channels: [
                width("post_conv_mid_channels", 512)?,
                width("post_conv_out_channels", 1024)?,
            ],
            vision,
            text,
        })
    }
}

impl TextConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size_of_class("d_model", 512, limits::WIDTH)?;
        let heads = s.size_of_class("decoder_attention_heads", 16, limits::HEADS)?;
        s.divide(("d_model", hidden), ("decoder_attention_heads", heads))?;
        let vocab = s.size_of_class("vocab_size", 50_000, limits::VOCAB)?;
        s.padding(vocab)?;
        s.only(
            "decoder_layerdrop",
            "0: blocks that chance drops are not simulated",
            |p| p.as_f64() == Some(0.0),
        )?;
        // Another name under which the configuration class keeps the width (`attribute_map`).
        let allowed = "absent, or the same as d_model: another value is not simulated";
        s.only("hidden_size", allowed, |given| given.as_u64() == Some(hidden))?;
        Ok(Self {
            vocab,
            layers: s.size_of_class("decoder_layers", 8, limits::LAYERS)?,
            positions: s.size_of_class("max_position_embeddings", 2560, limits::POSITIONS)?,
            block: BlockConfig {
                hidden,
                intermediate: s.size_of_class("decoder_ffn_dim", 2048, limits::WIDTH * 4)?,
                heads,
                attention: AttentionForm::Interface,
                bias: true,
                norm_before: true,
                has_cross_attention: true,
                nests_activation: true,
                activation: s.activation("activation_function", Activation::Gelu)?,
                dropout: s.probability("dropout", 0.1)?,
                attention_dropout: s.probability("attention_dropout", 0.0)?,
                activation_dropout: s.probability("activation_dropout", 0.0)?,
            },
        })
    }
}
