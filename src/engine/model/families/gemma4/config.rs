//! Configuration of Gemma 4 around its language model.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::families::gemma4_text::Gemma4TextConfig;

/// Tokens that the processor makes of an image at most (`max_soft_tokens`), to which it pads all.
pub const SOFT_TOKENS: u64 = 280;

/// Gemma 4 around its language model: a tower for images (`gemma4`), or two linear layers that embed their patches
/// (`gemma4_unified`), or neither.
///
/// Source: `transformers/models/{gemma4,gemma4_unified}/configuration_*.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gemma4Config {
    /// The language model.
    pub text: Gemma4TextConfig,
    /// Part that takes images; `None` for a model of text alone.
    pub vision: Option<Vision>,
    /// Part that takes sound, of which only the parameters are made.
    pub audio: Option<Audio>,
    /// True for `gemma4_unified`.
    pub unified: bool,
}

/// Part that takes images.
#[derive(Debug, Clone, PartialEq)]
pub enum Vision {
    /// Embeds merged patches.
    Patches(PatchEmbedding),
    /// A tower.
    Tower(VisionTower),
}

/// Part that takes sound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Audio {
    /// Projects frames of this many elements.
    Frames(u64),
    /// A tower.
    Tower(AudioTower),
}

/// `Gemma4VisionConfig`.
#[derive(Debug, Clone, PartialEq)]
pub struct VisionTower {
    /// Width of the blocks.
    pub hidden: u64,
    /// Width of the MLPs.
    pub intermediate: u64,
    /// Number of blocks.
    pub layers: u64,
    /// Heads of queries.
    pub heads: u64,
    /// Heads of keys and values.
    pub kv_heads: u64,
    /// Elements of a head.
    pub head_dim: u64,
    /// Activation of the gate.
    pub activation: Activation,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Pixels a side of a patch.
    pub patch: u64,
    /// Patches a side of the square that becomes one token.
    pub pool: u64,
    /// Positions along each axis.
    pub positions: u64,
    /// True if inputs and outputs of the linear layers are clamped.
    pub clips: bool,
    /// True if features are standardized.
    pub standardizes: bool,
}

/// `Gemma4AudioConfig`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AudioTower {
    /// Width of the blocks.
    pub hidden: u64,
    /// Number of blocks.
    pub layers: u64,
    /// Heads.
    pub heads: u64,
    /// Channels of the two convolutions that shorten the sound.
    pub channels: [u64; 2],
    /// Frames that the convolution of a block sees.
    pub kernel: u64,
    /// Width of the features.
    pub output: u64,
    /// True if linear layers have limits of their inputs and outputs.
    pub clips: bool,
}

/// Embedding of merged patches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PatchEmbedding {
    /// Pixels a side of a merged patch, which is one token.
    pub patch: u64,
    /// Width of a patch's embedding.
    pub width: u64,
    /// Positions along each axis.
    pub positions: u64,
}

impl Vision {
    /// Pixels a side of the square that becomes one token.
    pub const fn side(&self) -> u64 {
        match self {
            Self::Patches(patches) => patches.patch,
            Self::Tower(tower) => tower.patch * tower.pool,
        }
    }

    /// Patches of an image with its padding, and elements of a patch.
    pub const fn patches(&self) -> [u64; 2] {
        match self {
            Self::Patches(patches) => [SOFT_TOKENS, patches.elements()],
            Self::Tower(tower) => [SOFT_TOKENS * tower.pool * tower.pool, tower.elements()],
        }
    }

    /// Tokens of an image of [height, width] pixels (`get_aspect_ratio_preserving_size`).
    pub fn tokens(&self, [height, width]: [u64; 2]) -> u64 {
        let (h, w, patch) = (height as f64, width as f64, self.side() as f64);
        let factor = ((SOFT_TOKENS as f64 * patch * patch) / (h * w)).sqrt();
        let [rows, columns] = [h, w].map(|side| (factor * side / patch).floor() as u64);
        match [rows, columns] {
            [0, _] => (width / height.max(1)).min(SOFT_TOKENS),
            [_, 0] => (height / width.max(1)).min(SOFT_TOKENS),
            [rows, columns] => rows * columns,
        }
    }
}

impl PatchEmbedding {
    /// Elements of a patch.
    pub const fn elements(self) -> u64 {
        self.patch * self.patch * 3
    }
}

impl VisionTower {
    /// Elements of a patch.
    pub const fn elements(&self) -> u64 {
        self.patch * self.patch * 3
    }

    fn read(s: &Section) -> Result<Self, ModelError> {
        s.expect_model_type(&["gemma4_vision"])?;
        let heads = s.size("num_attention_heads", 12, limits::HEADS)?;
        let kv_heads = s.size("num_key_value_heads", 12, limits::HEADS)?;
        s.divide(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
        let head_dim = s.size("head_dim", 64, limits::HEAD_DIM)?;
        // Each axis rotates half of a head, in pairs.
        s.divide(("head_dim", head_dim), ("4", 4))?;
        Ok(Self {
            hidden: s.size("hidden_size", 768, limits::WIDTH)?,
            intermediate: s.size("intermediate_size", 3072, limits::WIDTH * 4)?,
            layers: s.size("num_hidden_layers", 16, limits::LAYERS)?,
            heads,
            kv_heads,
            head_dim,
            activation: s.activation("hidden_activation", Activation::GeluTanh)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            patch: s.size_or("patch_size", 16, limits::COUNT)?,
            pool: s.size_or("pooling_kernel_size", 3, limits::COUNT)?,
            positions: s.size_or("position_embedding_size", 10_240, limits::POSITIONS)?,
            clips: s.flag("use_clipped_linears", false)?,
            standardizes: s.flag("standardize", false)?,
        })
    }
}

impl AudioTower {
    fn read(s: &Section) -> Result<Self, ModelError> {
        s.expect_model_type(&["gemma4_audio"])?;
        let hidden = s.size("hidden_size", 1024, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 8, limits::HEADS)?;
        s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
        let key = "subsampling_conv_channels";
        let channels = match s.value(key) {
            None => [128, 32],
            Some(value) => {
                let channel = |place: usize| value.get(place)?.as_u64().filter(|n| (1..=limits::WIDTH).contains(n));
                let both = channel(0).zip(channel(1));
                let (first, second) = both.ok_or_else(|| s.wrong(key, value, "a list of two numbers of channels"))?;
                [first, second]
            }
        };
        Ok(Self {
            hidden,
            layers: s.size("num_hidden_layers", 12, limits::LAYERS)?,
            heads,
            channels,
            kernel: s.size_or("conv_kernel_size", 5, limits::COUNT)?,
            output: s.size_or("output_proj_dims", 1536, limits::WIDTH)?,
            clips: s.flag("use_clipped_linears", true)?,
        })
    }
}

impl Gemma4Config {
    pub(crate) fn read(s: &Section, unified: bool) -> Result<Self, ModelError> {
        let name = if unified { "gemma4_unified_text" } else { "gemma4_text" };
        let text = s.nested_or_empty("text_config", "Gemma 4 language")?;
        text.expect_model_type(&[name])?;
        let mut text = Gemma4TextConfig::read(&text, unified)?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", true)?;
        let vision_config = s.optional_nested("vision_config", "Gemma 4 vision")?;
        let audio = s.optional_nested("audio_config", "Gemma 4 audio")?;
        let vision = |s: &Section| {
            Ok(match unified {
                true => Vision::Patches(embedding(s)?),
                false => Vision::Tower(VisionTower::read(s)?),
            })
        };
        let audio_of = |s: &Section| {
            Ok(match unified {
                true => Audio::Frames(s.size("audio_embed_dim", 640, limits::WIDTH)?),
                false => Audio::Tower(AudioTower::read(s)?),
            })
        };
        Ok(Self {
            text,
            vision: vision_config.as_ref().map(vision).transpose()?,
            audio: audio.as_ref().map(audio_of).transpose()?,
            unified,
        })
    }
}

fn embedding(s: &Section) -> Result<PatchEmbedding, ModelError> {
    let patch = s.size("patch_size", 16, limits::COUNT)? * s.size("pooling_kernel_size", 3, limits::COUNT)?;
    let width = s.size("mm_embed_dim", 3840, limits::WIDTH)?;
    let projected = s.size("output_proj_dims", 3840, limits::WIDTH)?;
    s.equal(("mm_embed_dim", width), ("output_proj_dims", projected))?;
    Ok(PatchEmbedding {
        patch,
        width,
        positions: s.size("mm_posemb_size", 1120, limits::POSITIONS)?,
    })
}
