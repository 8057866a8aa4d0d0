//! Configuration of Cosmos 3 Edge.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits, rope};
use crate::model::decoder::{
    Biases, DecoderConfig, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, MlpKind, Modules,
    SoftCaps, Windows,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;
use crate::model::parts::qwen_vl::{QwenPatches, Resize, Widening};

/// Cosmos 3 Edge: SigLIP 2's tower on patches of any grid, a projector, and a decoder like Llama's with multimodal rope and
/// an MLP without a gate.
///
/// Source: `transformers/models/cosmos3_edge/configuration_cosmos3_edge.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Cosmos3EdgeConfig {
    /// The vision tower.
    pub vision: Cosmos3EdgeVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Width inside the projector (`projector_hidden_size`).
    pub projector: u64,
    /// Token id that image features replace.
    pub image_token: u64,
}

/// Cosmos 3 Edge's vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct Cosmos3EdgeVisionConfig {
    /// Blocks and patches.
    pub patches: QwenPatches,
    /// Width of the residual stream.
    pub width: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Side of the square grid of learned positions, which is interpolated to the image's grid.
    pub side: u64,
}

/// `Cosmos3EdgeTextModel`.
static TEXT: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "cosmos3_edge_text",
        classes: &[],
    },
    catalogue: &[],
    defaults: DecoderDefaults {
        vocab: 131_072,
        hidden: 2048,
        intermediate: 9216,
        layers: 28,
        heads: 16,
        kv_heads: Some(8),
        head_dim: Some(128),
        max_positions: 131_072,
        activation: Activation::Relu2,
        theta: 1e8,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Divides,
    biases: Biases::of_attention_and_mlp,
    windows: Windows::NEVER,
    qk_norm: false,
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            mlp: MlpKind::Plain(["fc1", "fc2"]),
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    own: DecoderFamily::USUAL.own,
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Unknown,
};

/// `Cosmos3EdgeTextConfig.mrope_section`.
const SECTIONS: [u64; 3] = [24, 20, 20];

impl Cosmos3EdgeConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = s.nested_or_empty("text_config", "Cosmos 3 Edge language")?;
        let vision = s.nested_or_empty("vision_config", "Cosmos 3 Edge vision")?;
        Ok(Self {
            vision: Cosmos3EdgeVisionConfig::read(&vision)?,
            text: read_text(&text)?,
            projector: s.size_or("projector_hidden_size", 11_520, limits::WIDTH * 4)?,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], 19)?,
        })
    }
}

/// Reads the language model, whose head never shares the token embedding's weight (`_tied_weights_keys` is empty).
fn read_text(s: &Section) -> Result<DecoderConfig, ModelError> {
    let table = rope::unscaled_table(s)?;
    let mut text = DecoderConfig::read(s, &TEXT)?;
    text.tie_word_embeddings = false;
    let sections = match (table, &text.rope.mrope_section) {
        (None, _) => SECTIONS.to_vec(),
        (Some(_), sections) => sections.clone().unwrap_or_default(),
    };
    if sections.len() != SECTIONS.len() || sections.iter().sum::<u64>() != text.head_dim / 2 {
        return Err(s.wrong(
            "rope_parameters.mrope_section",
            &sections.into(),
            &format!("three numbers whose sum is {}, half of head_dim", text.head_dim / 2),
        ));
    }
    Ok(text)
}

impl Cosmos3EdgeVisionConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        let patch = s.side("patch_size", 16, limits::PIXELS)?;
        let merge = s.size("spatial_merge_size", 2, limits::COUNT)?;
        let patches = QwenPatches {
            layers: s.size("num_hidden_layers", 27, limits::LAYERS)?,
            heads: s.size("num_attention_heads", 16, limits::HEADS)?,
            channels: s.channels()?,
            patch,
            temporal_patch: 1,
            merge,
            // `Cosmos3EdgeImageProcessor.size`, in tokens of 32 × 32 pixels.
            resize: Resize::of_tokens([64, 16_384], patch * merge, Widening::Cut),
        };
        let width = s.size("hidden_size", 1152, limits::WIDTH)?;
        s.divide(("hidden_size", width), ("num_attention_heads", patches.heads))?;
        let positions = s.size_or("num_patches", 256, limits::POSITIONS)?;
        let side = positions.isqrt();
        s.only("num_patches", "the square of a whole number", |_| {
            side * side == positions
        })?;
        s.only("attention_dropout", "0: dropout in the tower is not simulated", |p| {
            p.as_f64() == Some(0.0)
        })?;
        Ok(Self {
            patches,
            width,
            intermediate: s.size("intermediate_size", 4304, limits::WIDTH * 4)?,
            activation: s.activation("hidden_act", Activation::GeluTanh)?,
            side,
        })
    }
}
