//! Configuration of Ovis2.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, PatchGrid, limits};
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;

/// Ovis2: a tower whose features are probabilities of visual words, a table of these words' embeddings, any decoder.
///
/// Source: `transformers/models/ovis2/configuration_ovis2.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Ovis2Config {
    /// The vision tower.
    pub vision: Ovis2VisionConfig,
    /// The language model.
    pub text: DecoderConfig,
}

/// Ovis2's vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct Ovis2VisionConfig {
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Image and patch sizes.
    pub grid: PatchGrid,
    /// Activation of the gate.
    pub activation: Activation,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// True if attention's projections have biases.
    pub qkv_bias: bool,
    /// True if the MLPs' projections have biases.
    pub mlp_bias: bool,
    /// Visual words, with the indicators.
    pub words: u64,
    /// Visual words that indicate where images and rows begin and end.
    pub indicators: u64,
    /// Patches along each side of the square that becomes one token.
    pub stride: u64,
}

impl Ovis2Config {
    /// Image tokens of one tower input.
    pub fn tile_tokens(&self) -> u64 {
        self.vision.grid.patches() / (self.vision.stride * self.vision.stride)
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "qwen2")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", true)?;
        s.equal(
            ("hidden_size", s.size_or("hidden_size", 1536, limits::WIDTH)?),
            ("text_config.hidden_size", text.hidden),
        )?;
        s.equal(
            ("vocab_size", s.size_or("vocab_size", 151_643, limits::VOCAB)?),
            ("text_config.vocab_size", text.vocab),
        )?;
        s.only(
            "visual_indicator_token_ids",
            "a list of the 5 tokens of its processor",
            |ids| ids.as_array().is_some_and(|list| list.len() == 5),
        )?;
        let section = s.nested_or_empty("vision_config", "Ovis2 vision")?;
        let vision = Ovis2VisionConfig::read(&section)?;
        section.only("num_visual_indicator_tokens", "5, as its processor has", |_| {
            vision.indicators == 5
        })?;
        Ok(Self { vision, text })
    }
}

impl Ovis2VisionConfig {
    const SHAPE: EncoderShape = EncoderShape {
        hidden: 1024,
        intermediate: 2816,
        layers: 24,
        heads: 8,
    };

    fn read(s: &Section) -> Result<Self, ModelError> {
        s.only(
            "tokenize_function",
            "softmax: other ways to choose visual words are not simulated",
            |way| way == "softmax",
        )?;
        let grid = PatchGrid::read(s, 224, 14)?;
        let stride = s.size_or("hidden_stride", 1, limits::COUNT)?;
        s.divide(("patches a side", grid.side()), ("hidden_stride", stride))?;
        let words = s.size_or("vocab_size", 16_384, limits::VOCAB)?;
        let indicators = s.size_or("num_visual_indicator_tokens", 5, limits::COUNT)?;
        if words <= indicators {
            return Err(s.wrong("vocab_size", &words.into(), "more visual words than indicators"));
        }
        Ok(Self {
            shape: EncoderShape::read(s, Self::SHAPE)?,
            grid,
            activation: s.activation("hidden_act", Activation::Silu)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            qkv_bias: s.flag("qkv_bias", false)?,
            mlp_bias: s.flag("mlp_bias", false)?,
            words,
            indicators,
            stride,
        })
    }
}
