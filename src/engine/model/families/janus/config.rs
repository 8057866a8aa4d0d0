//! Configuration of Janus.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, PatchGrid, limits};
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;

/// Janus: a SigLIP-like tower and an aligner for the images that it reads, a quantizing autoencoder for those that it
/// makes, any decoder. Only reading is simulated, in which the autoencoder does not run.
///
/// Source: `transformers/models/janus/configuration_janus.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct JanusConfig {
    /// The vision tower and the aligner.
    pub vision: JanusVisionConfig,
    /// The autoencoder and what belongs to it.
    pub vq: VqConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Token id that image features replace.
    pub image_token: u64,
}

/// Janus' vision tower and aligner.
#[derive(Debug, Clone, PartialEq)]
pub struct JanusVisionConfig {
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Image and patch sizes.
    pub grid: PatchGrid,
    /// Activation of the MLPs, and of the aligner.
    pub activation: Activation,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// True if query, key and value projections have biases.
    pub attention_bias: bool,
    /// Width of the aligner.
    pub projection: u64,
    /// Linear layers of the aligner.
    pub depth: u64,
}

/// The autoencoder, and the modules that embed and predict its codes.
#[derive(Debug, Clone, PartialEq)]
pub struct VqConfig {
    /// Width of a code.
    pub embed: u64,
    /// Codes.
    pub codes: u64,
    /// Channels of the latent image that the decoder reads.
    pub latent: u64,
    /// Channels of the latent image that the encoder writes.
    pub encoded: u64,
    /// Colour channels that are read and written.
    pub colours: [u64; 2],
    /// Channels of each resolution.
    pub channels: Vec<u64>,
    /// Residual blocks of each resolution.
    pub blocks: u64,
    /// Width of the modules that embed and predict codes.
    pub projection: u64,
    /// Linear layers of the module that embeds codes.
    pub layers: u64,
    /// Width that the module that predicts codes reads.
    pub head_input: u64,
}

impl JanusConfig {
    /// Image tokens of one image: rows as wide as the language model that its features make.
    pub fn image_tokens(&self) -> u64 {
        self.vision.grid.patches() * self.vision.projection / self.text.hidden
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "llama")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", true)?;
        let vision = JanusVisionConfig::read(&s.nested_or_empty("vision_config", "Janus vision")?)?;
        let elements = vision.grid.patches() * vision.projection;
        s.divide(
            ("patches × projection_dim", elements),
            ("text_config.hidden_size", text.hidden),
        )?;
        Ok(Self {
            vision,
            vq: VqConfig::read(&s.nested_or_empty("vq_config", "Janus autoencoder")?)?,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], 100_581)?,
            text,
        })
    }
}

impl JanusVisionConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        let none = |value: &serde_json::Value| value.as_f64() == Some(0.0);
        s.only("hidden_dropout_rate", "0: dropout in its MLPs is not simulated", none)?;
        s.only(
            "projection_dropout",
            "0: dropout after its attention is not simulated",
            none,
        )?;
        s.only(
            "use_qk_norm",
            "false: its norms are as wide as the model, and fail",
            |norm| norm == false,
        )?;
        let hidden = s.size("hidden_size", 1024, limits::WIDTH)?;
        let ratio = s.optional_number("mlp_ratio")?.unwrap_or(4.0);
        let intermediate = (hidden as f64 * ratio) as u64;
        if !(1..=limits::WIDTH * 4).contains(&intermediate) {
            let given = s.value("mlp_ratio").cloned().unwrap_or_default();
            return Err(s.wrong("mlp_ratio", &given, "a positive number, such as 4"));
        }
        let heads = s.size("num_attention_heads", 16, limits::HEADS)?;
        s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
        Ok(Self {
            shape: EncoderShape {
                hidden,
                intermediate,
                layers: s.size("num_hidden_layers", 24, limits::LAYERS)?,
                heads,
            },
            grid: PatchGrid::read(s, 384, 16)?,
            activation: s.activation("hidden_act", Activation::Gelu)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            attention_bias: s.flag("attention_bias", true)?,
            projection: s.size_or("projection_dim", 2048, limits::WIDTH)?,
            depth: s.size_or("depth", 2, limits::LAYERS)?,
        })
    }
}

impl VqConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        let base = s.size_or("base_channels", 128, limits::WIDTH)?;
        let multipliers = s.optional_indices("channel_multiplier", limits::COUNT)?;
        let channels: Vec<u64> = multipliers
            .unwrap_or_else(|| vec![1, 1, 2, 2, 4])
            .iter()
            .map(|n| n * base)
            .collect();
        for &n in channels.iter().chain([&base]) {
            s.divide(("base_channels × channel_multiplier", n), ("groups of its norms", 32))?;
        }
        if channels.is_empty() || channels.contains(&0) {
            let given = s.value("channel_multiplier").cloned().unwrap_or_default();
            return Err(s.wrong("channel_multiplier", &given, "a list of positive numbers"));
        }
        let latent = s.size_or("latent_channels", 256, limits::WIDTH)?;
        let doubles = s.flag("double_latent", false)?;
        Ok(Self {
            embed: s.size_or("embed_dim", 8, limits::WIDTH)?,
            codes: s.size_or("num_embeddings", 16_384, limits::VOCAB)?,
            latent,
            encoded: if doubles { 2 * latent } else { latent },
            colours: [
                s.size_or("in_channels", 3, limits::COUNT)?,
                s.size_or("out_channels", 3, limits::COUNT)?,
            ],
            channels: [vec![base], channels].concat(),
            blocks: s.size_or("num_res_blocks", 2, limits::LAYERS)?,
            projection: s.size_or("projection_dim", 2048, limits::WIDTH)?,
            layers: s.size_or("num_hidden_layers", 2, limits::LAYERS)?,
            head_input: s.size_or("image_token_embed_dim", 2048, limits::WIDTH)?,
        })
    }
}
