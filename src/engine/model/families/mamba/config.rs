//! Configuration of Mamba, Falcon Mamba and Mamba 2.

use serde_json::Value;

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::parts::mamba2::{ConvSizes, Mamba2Sizes};
use crate::nn::Activation;

/// Mamba, Falcon Mamba or Mamba 2.
///
/// Source: `transformers/models/mamba/configuration_mamba.py`, `falcon_mamba/configuration_falcon_mamba.py`,
/// `mamba2/configuration_mamba2.py`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MambaConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside a mixer.
    pub intermediate: u64,
    /// Elements of the state for each channel inside a mixer.
    pub state: u64,
    /// Width that time steps are computed from.
    pub time_step_rank: u64,
    /// Layers.
    pub layers: u64,
    /// The convolution.
    pub conv: ConvSizes,
    /// True if the projections into and out of a mixer have biases.
    pub bias: bool,
    /// True if the residual stream is in fp32.
    pub residual_in_fp32: bool,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
    /// Kind of mixers.
    pub kind: Kind,
}

/// Kind of mixers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Those of Mamba.
    Mamba,
    /// Those of Falcon Mamba, which normalise what the state is computed from.
    FalconMamba,
    /// Those of Jamba, whose norms of what the state is computed from have weights.
    Jamba,
    /// Those of Mamba 2.
    Mamba2(Mamba2Sizes),
}

/// Reads the sizes of a mixer of Mamba 2.
fn second(s: &Section) -> Result<Mamba2Sizes, ModelError> {
    let heads = s.size_or("num_heads", 128, limits::HEADS)?;
    let groups = s.size_or("n_groups", 8, limits::HEADS)?;
    s.divide(("num_heads", heads), ("n_groups", groups))?;
    Ok(Mamba2Sizes {
        heads,
        head_dim: s.size_or("head_dim", 64, limits::HEAD_DIM)?,
        groups,
        state: s.size_or("state_size", 128, limits::WIDTH)?,
        chunk: s.size_or("chunk_size", 256, limits::COUNT)?,
    })
}

/// Width inside a mixer of Mamba and Falcon Mamba, whose files state it beside `expand`.
const INTERMEDIATE: &str = "intermediate_size";

impl MambaConfig {
    pub(super) fn read_of(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        let kind = match model_type {
            "mamba2" => Kind::Mamba2(second(s)?),
            "falcon_mamba" => Kind::FalconMamba,
            _ => Kind::Mamba,
        };
        let is_second = matches!(kind, Kind::Mamba2(_));
        let or = |second, first| if is_second { second } else { first };
        let hidden = s.size("hidden_size", or(4096, 768), limits::WIDTH)?;
        let time_step_rank = match s.value("time_step_rank") {
            None => hidden.div_ceil(16),
            Some(Value::String(text)) if text == "auto" => hidden.div_ceil(16),
            Some(_) => s.size("time_step_rank", 1, limits::WIDTH)?,
        };
        let expanded = hidden * s.size_or("expand", 2, 64)?;
        let intermediate = match &kind {
            // Reads no `intermediate_size`: its mixer multiplies by itself.
            Kind::Mamba2(sizes) => {
                let inside = ("num_heads × head_dim", sizes.heads * sizes.head_dim);
                s.equal(("hidden_size × expand", expanded), inside)?;
                expanded
            }
            // The class computes it, and what the file states then takes its place (`__post_init__`).
            Kind::Mamba | Kind::FalconMamba | Kind::Jamba if s.has(INTERMEDIATE) => {
                s.required(INTERMEDIATE, "a whole number, or no such key")?;
                s.size(INTERMEDIATE, expanded, limits::WIDTH)?
            }
            Kind::Mamba | Kind::FalconMamba | Kind::Jamba => expanded,
        };
        Ok(Self {
            vocab: s.size("vocab_size", or(32_768, 50_280), limits::VOCAB)?,
            hidden,
            intermediate,
            state: s.size_or("state_size", or(128, 16), limits::WIDTH)?,
            time_step_rank,
            layers: s.size("num_hidden_layers", or(64, 32), limits::LAYERS)?,
            conv: ConvSizes {
                kernel: s.size_or("conv_kernel", 4, limits::COUNT)?,
                bias: s.flag("use_conv_bias", true)?,
                activation: s.activation("hidden_act", Activation::Silu)?,
            },
            bias: s.flag("use_bias", false)?,
            residual_in_fp32: s.flag("residual_in_fp32", true)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", !is_second)?,
            kind,
        })
    }
}
