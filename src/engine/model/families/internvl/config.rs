//! Configuration of InternVL 2.5 and 3, and of Qianfan-OCR.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, PatchGrid};
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::pixel_shuffle;

/// InternVL 2.5 and 3, and Qianfan-OCR: InternViT, a pixel shuffle, a two-layer projector, any decoder.
///
/// Source: `transformers/models/{internvl,qianfan_ocr}/configuration_*.py`. Files of the original repositories
/// (`internvl_chat`), which name these parts differently, are read too.
#[derive(Debug, Clone, PartialEq)]
pub struct InternVlConfig {
    /// True if read from a `qianfan_ocr` file.
    pub is_qianfan: bool,
    /// The vision tower, run on each tile.
    pub vision: InternVlVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Patches along each side of the square that becomes one token (1 ÷ `downsample_ratio`).
    pub shuffle: u64,
    /// Activation between the projector's two linear layers.
    pub projector_activation: Activation,
    /// Token id that image features replace.
    pub image_token: u64,
}

/// InternVL's vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct InternVlVisionConfig {
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Tile and patch sizes.
    pub grid: PatchGrid,
    /// True if query, key and value projections have biases.
    pub attention_bias: bool,
    /// True if queries and keys pass an RMS norm of the full width.
    pub qk_norm: bool,
    /// True for RMS norms, false for layer norms.
    pub rms_norm: bool,
    /// Activation of the MLP.
    pub activation: Activation,
    /// True if positions are learned.
    pub position_embeddings: bool,
    /// True if the tower has a mask token.
    pub mask_token: bool,
    /// True if pooling is a mean, in which case no norm closes the tower.
    pub mean_pooling: bool,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Dropout of hidden states.
    pub hidden_dropout: f64,
    /// Dropout after the attention's output projection.
    pub projection_dropout: f64,
    /// Form of the tower.
    pub form: VisionForm,
}

/// Form of InternVL's tower.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum VisionForm {
    /// InternVL's own.
    InternVl,
    /// Qianfan-OCR's: blocks drop whole samples, with a probability that grows up to this in the last one.
    Qianfan(f64),
}

impl InternVlConfig {
    /// Image tokens of one tile.
    pub fn tile_tokens(&self) -> u64 {
        self.vision.grid.patches() / (self.shuffle * self.shuffle)
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "qwen2")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", true)?;
        Ok(Self {
            is_qianfan: false,
            vision: InternVlVisionConfig::read(&s.nested("vision_config", "InternVL vision")?)?,
            text,
            shuffle: pixel_shuffle::read_inverse_factor(s, "downsample_ratio")?,
            projector_activation: s.activation("projector_hidden_act", Activation::Gelu)?,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], 151_667)?,
        })
    }

    /// Reads Qianfan-OCR.
    pub(crate) fn read_qianfan(s: &Section) -> Result<Self, ModelError> {
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "qwen3")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        s.only("vision_feature_layer", "-1: others are not simulated", |layer| {
            layer == -1
        })?;
        s.only("vision_feature_select_strategy", "\"default\"", |select| {
            select == "default"
        })?;
        Ok(Self {
            is_qianfan: true,
            vision: InternVlVisionConfig::read_qianfan(&s.nested("vision_config", "Qianfan-OCR vision")?)?,
            text,
            shuffle: pixel_shuffle::read_inverse_factor(s, "downsample_ratio")?,
            projector_activation: s.activation("projector_hidden_act", Activation::Gelu)?,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], 151_667)?,
        })
    }

    /// Reads a file of the original repositories.
    pub(crate) fn read_chat(s: &Section) -> Result<Self, ModelError> {
        let mut vision = InternVlVisionConfig::read(&s.nested("vision_config", "InternViT")?)?;
        // The original tower returns its last block's output unchanged: no norm closes it.
        vision.mean_pooling = true;
        Ok(Self {
            is_qianfan: false,
            vision,
            text: decoders::read_text(&s.nested("llm_config", "language")?, "qwen2")?,
            shuffle: pixel_shuffle::read_inverse_factor(s, "downsample_ratio")?,
            projector_activation: Activation::Gelu,
            image_token: 151_667,
        })
    }
}

impl InternVlVisionConfig {
    const SHAPE: EncoderShape = EncoderShape {
        hidden: 1024,
        intermediate: 4096,
        layers: 24,
        heads: 16,
    };

    fn read_qianfan(s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            attention_bias: s.flag("attention_bias", true)?,
            form: VisionForm::Qianfan(s.probability("drop_path_rate", 0.1)?),
            ..Self::read(s)?
        })
    }

    fn read(s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            form: VisionForm::InternVl,
            shape: EncoderShape::read(s, Self::SHAPE)?,
            grid: PatchGrid::read(s, 448, 14)?,
            attention_bias: s.flag("attention_bias", false)? || s.flag("qkv_bias", false)?,
            qk_norm: s.flag("use_qk_norm", false)? || s.flag("qk_normalization", false)?,
            rms_norm: s.optional_text("norm_type")? == Some("rms_norm"),
            activation: s.activation("hidden_act", Activation::Gelu)?,
            position_embeddings: s.flag("use_absolute_position_embeddings", true)?,
            mask_token: s.flag("use_mask_token", false)?,
            mean_pooling: s.flag("use_mean_pooling", true)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            hidden_dropout: s.probability("hidden_dropout_prob", 0.0)?,
            projection_dropout: s.probability("projection_dropout", 0.0)?,
        })
    }
}
