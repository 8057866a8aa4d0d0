//! Configuration of Pix2Struct.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};

/// Pix2Struct: a tower on patches of an image of any shape, and T5's decoder.
///
/// Source: `transformers/models/pix2struct/configuration_pix2struct.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Pix2StructConfig {
    /// The vision tower.
    pub vision: VisionConfig,
    /// The decoder.
    pub text: TextConfig,
}

/// Sizes of blocks, of the tower or of the decoder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockSizes {
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout inside the MLP; in the decoder, all dropout.
    pub dropout: f64,
}

/// The vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct VisionConfig {
    /// Sizes of a block.
    pub block: BlockSizes,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Elements of a head.
    pub head_width: u64,
    /// Elements of a patch.
    pub patch: u64,
    /// Entries of the tables of rows and columns.
    pub positions: u64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
}

/// The decoder.
#[derive(Debug, Clone, PartialEq)]
pub struct TextConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Sizes of a block.
    pub block: BlockSizes,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Elements of a head.
    pub head_width: u64,
    /// Entries of the table of relative positions.
    pub buckets: u64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl Pix2StructConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        // The configuration class hands its own value on to the decoder's.
        let ties = s.flag("tie_word_embeddings", false)?;
        let text = TextConfig::read(&s.nested_or_empty("text_config", "Pix2Struct's decoder")?, ties)?;
        let v = s.nested_or_empty("vision_config", "Pix2Struct's vision")?;
        let vision = VisionConfig::read(&v)?;
        // The decoder's projections of what the tower made are as wide as the decoder.
        v.equal(
            ("hidden_size", vision.block.hidden),
            ("hidden_size of text_config", text.block.hidden),
        )?;
        Ok(Self { vision, text })
    }
}

impl VisionConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            block: BlockSizes::read(s)?,
            layers: s.size_of_class("num_hidden_layers", 12, limits::LAYERS)?,
            heads: s.size_of_class("num_attention_heads", 12, limits::HEADS)?,
            head_width: s.size_of_class("d_kv", 64, limits::WIDTH)?,
            patch: s.size_of_class("patch_embed_hidden_size", 768, limits::WIDTH)?,
            positions: s.size_of_class("seq_len", 4096, limits::POSITIONS)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
        })
    }
}

impl TextConfig {
    fn read(s: &Section, ties: bool) -> Result<Self, ModelError> {
        let mut block = BlockSizes::read(s)?;
        block.dropout = s.probability("dropout_rate", 0.1)?;
        let heads = s.size_of_class("num_heads", 12, limits::HEADS)?;
        let head_width = s.size_of_class("d_kv", 64, limits::WIDTH)?;
        // Projections are as wide as the stream, whatever the heads are.
        s.equal(("num_heads × d_kv", heads * head_width), ("hidden_size", block.hidden))?;
        s.only("is_decoder", "true: another mask is not simulated", |v| {
            v.as_bool() == Some(true)
        })?;
        Ok(Self {
            vocab: s.size_of_class("vocab_size", 50_244, limits::VOCAB)?,
            layers: s.size_of_class("num_layers", 12, limits::LAYERS)?,
            buckets: s.size_or("relative_attention_num_buckets", 32, limits::POSITIONS)?,
            tie_word_embeddings: ties,
            block,
            heads,
            head_width,
        })
    }
}

impl BlockSizes {
    fn read(s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            hidden: s.size_of_class("hidden_size", 768, limits::WIDTH)?,
            intermediate: s.size_of_class("d_ff", 2048, limits::WIDTH * 4)?,
            activation: s.activation("dense_act_fn", Activation::GeluNew)?,
            dropout: s.probability("dropout_rate", 0.0)?,
        })
    }
}
