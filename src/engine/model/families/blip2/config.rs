//! Configuration of BLIP-2.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, PatchGrid, limits};
use crate::model::families::opt::OptConfig;

/// BLIP-2: a ViT, a querying transformer, one linear projection, OPT.
///
/// Source: `transformers/models/blip_2/configuration_blip_2.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Blip2Config {
    /// The vision tower.
    pub vision: Blip2VisionConfig,
    /// The querying transformer.
    pub qformer: QFormerConfig,
    /// The language model.
    pub text: OptConfig,
    /// Learned queries: image tokens of one image.
    pub queries: u64,
}

/// BLIP-2's vision tower: class token, fused query-key-value.
#[derive(Debug, Clone, PartialEq)]
pub struct Blip2VisionConfig {
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Image and patch sizes.
    pub grid: PatchGrid,
    /// True if the fused projection has biases for query and value.
    pub qkv_bias: bool,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// True if its attention is eager, whatever implementation is asked for, as BLIP's.
    pub written_out: bool,
}

/// The querying transformer: BERT blocks, some with cross-attention to the image.
#[derive(Debug, Clone, PartialEq)]
pub struct QFormerConfig {
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Number of blocks per cross-attention, counted from the first block.
    pub cross_attention_frequency: u64,
    /// Width of the image features that cross-attention reads: the vision tower's.
    pub encoder_hidden: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of hidden states.
    pub hidden_dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// True if the transformer also reads text.
    pub text_input: bool,
}

impl Blip2Config {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = s.nested("text_config", "OPT")?;
        text.expect_model_type(&["opt"])?;
        if !s.flag("use_decoder_only_language_model", true)? {
            return Err(s.wrong(
                "use_decoder_only_language_model",
                &false.into(),
                "true: OPT has no encoder",
            ));
        }
        let vision = Blip2VisionConfig::read(&s.nested_or_empty("vision_config", "BLIP-2 vision")?)?;
        let qformer = s.nested_or_empty("qformer_config", "Q-Former")?;
        Ok(Self {
            qformer: QFormerConfig::read(&qformer, vision.shape.hidden)?,
            vision,
            text: OptConfig::read(&text)?,
            queries: s.size_or("num_query_tokens", 32, limits::COUNT)?,
        })
    }
}

impl Blip2VisionConfig {
    /// BLIP's tower.
    pub(crate) fn read_blip(s: &Section) -> Result<Self, ModelError> {
        let base = EncoderShape {
            hidden: 768,
            intermediate: 3072,
            layers: 12,
            heads: 12,
        };
        Ok(Self {
            shape: EncoderShape::read(s, base)?,
            grid: PatchGrid::read(s, 384, 16)?,
            qkv_bias: true,
            activation: s.activation("hidden_act", Activation::Gelu)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            written_out: true,
        })
    }

    const SHAPE: EncoderShape = EncoderShape {
        hidden: 1408,
        intermediate: 6144,
        layers: 39,
        heads: 16,
    };

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            shape: EncoderShape::read(s, Self::SHAPE)?,
            grid: PatchGrid::read(s, 224, 14)?,
            qkv_bias: s.flag("qkv_bias", true)?,
            activation: s.activation("hidden_act", Activation::Gelu)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            written_out: false,
        })
    }
}

impl QFormerConfig {
    const SHAPE: EncoderShape = EncoderShape {
        hidden: 768,
        intermediate: 3072,
        layers: 12,
        heads: 12,
    };

    pub(crate) fn read(s: &Section, encoder_hidden: u64) -> Result<Self, ModelError> {
        Ok(Self {
            shape: EncoderShape::read(s, Self::SHAPE)?,
            cross_attention_frequency: s.size_or("cross_attention_frequency", 2, limits::LAYERS)?,
            encoder_hidden,
            activation: s.activation("hidden_act", Activation::Gelu)?,
            hidden_dropout: s.probability("hidden_dropout_prob", 0.1)?,
            attention_dropout: s.probability("attention_probs_dropout_prob", 0.1)?,
            text_input: s.flag("use_qformer_text_input", false)?,
        })
    }
}
