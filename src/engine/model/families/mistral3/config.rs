//! Configuration of Mistral 3 and LightOnOCR.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::llava_vision::FeatureLayers;
use crate::model::parts::pixtral_vision::PixtralVisionConfig;
use crate::setup::Setup;

/// Mistral 3 and LightOnOCR: Pixtral's tower, a merger of patches, a two-layer projector, any decoder.
///
/// Source: `transformers/models/{mistral3,lighton_ocr}/configuration_*.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Mistral3Config {
    /// The model.
    pub kind: Mistral3Kind,
    /// The vision tower.
    pub vision: PixtralVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Patches along each side of the square that becomes one token.
    pub merge: u64,
    /// Activation between the projector's two linear layers.
    pub projector_activation: Activation,
    /// True if the projector's linear layers have biases.
    pub projector_bias: bool,
    /// Hidden state that feeds the projector.
    pub feature_layers: FeatureLayers,
}

/// Models of the family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistral3Kind {
    /// Mistral 3.
    Mistral3,
    /// LightOnOCR.
    LightOnOcr,
}

impl Mistral3Config {
    /// Pixels `[height, width]` of the images of a sample once they are resized: images of the sizes given, or square ones
    /// of the side given, or else of the longest side.
    pub fn sizes(&self, setup: &Setup) -> Vec<[u64; 2]> {
        let resized = |size| self.vision.resized(size, self.merge);
        if !setup.image_sizes.is_empty() {
            return setup.image_sizes.iter().copied().map(resized).collect();
        }
        let side = setup.image.unwrap_or(self.vision.grid.image);
        vec![resized([side; 2]); setup.given_images() as usize]
    }

    /// Positions that an image of `[height, width]` pixels takes: its tokens, and in Mistral 3 a break after each row.
    pub fn tokens(&self, size: [u64; 2]) -> u64 {
        let [rows, columns] = size.map(|n| n / (self.vision.grid.patch * self.merge));
        match self.kind {
            Mistral3Kind::Mistral3 => rows * (columns + 1),
            Mistral3Kind::LightOnOcr => rows * columns,
        }
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        s.only(
            "vision_feature_layer",
            "one layer: its projector is as wide as one",
            |layers| layers.as_array().is_none_or(|list| list.len() == 1),
        )?;
        let config = Self::read_parts(s, Mistral3Kind::Mistral3, "mistral")?;
        Ok(Self {
            projector_activation: s.activation("projector_hidden_act", Activation::Gelu)?,
            projector_bias: s.flag("multimodal_projector_bias", false)?,
            feature_layers: FeatureLayers::read(s, config.vision.shape.layers, 1)?,
            ..config
        })
    }

    pub(crate) fn read_lighton(s: &Section) -> Result<Self, ModelError> {
        Self::read_parts(s, Mistral3Kind::LightOnOcr, "qwen3")
    }

    fn read_parts(s: &Section, kind: Mistral3Kind, decoder: &str) -> Result<Self, ModelError> {
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, decoder)?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", true)?;
        let vision = PixtralVisionConfig::read(&s.nested("vision_config", "Pixtral vision")?)?;
        Ok(Self {
            kind,
            feature_layers: FeatureLayers::single(vision.shape.layers, 1),
            vision,
            text,
            merge: s.size_or("spatial_merge_size", 2, limits::COUNT)?,
            projector_activation: Activation::Gelu,
            projector_bias: false,
        })
    }
}
