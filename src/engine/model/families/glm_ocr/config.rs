//! Configuration of GLM-OCR.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::decoder::{
    Biases, DecoderConfig, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, MlpKind, Modules,
    NormPlacement, Rotation, SoftCaps, Windows,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;
use crate::model::parts::qwen_vl::QwenPatches;

/// GLM-OCR: a tower like Qwen2.5-VL's with norms of queries and keys, a convolution that joins patches, a gated merger, and
/// GLM-4's decoder with multimodal rope.
///
/// Source: `transformers/models/glm_ocr/configuration_glm_ocr.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct GlmOcrConfig {
    /// The vision tower.
    pub vision: GlmOcrVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Token id that image features replace.
    pub image_token: u64,
}

/// GLM-OCR's vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct GlmOcrVisionConfig {
    /// Blocks and patches.
    pub patches: QwenPatches,
    /// Width of the residual stream.
    pub width: u64,
    /// Width inside the gated MLP.
    pub intermediate: u64,
    /// Width of the joined patches, and of the merger's output: the language model's.
    pub output: u64,
    /// Activation of the gates.
    pub activation: Activation,
    /// True if the projections of attention and the MLP have biases.
    pub bias: bool,
}

/// `GlmOcrTextModel`.
static TEXT: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "glm_ocr_text",
        classes: &[],
    },
    catalogue: &[],
    defaults: DecoderDefaults {
        vocab: 59_392,
        hidden: 1024,
        intermediate: 4096,
        layers: 16,
        heads: 16,
        kv_heads: Some(8),
        max_positions: 131_072,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Free,
    biases: |_| Ok(Biases::NONE),
    windows: Windows::NEVER,
    qk_norm: false,
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
    modules: Modules::Llama(LlamaModules {
        partial_rotary: true,
        block: LlamaBlock {
            placement: NormPlacement::Around(["post_self_attn_layernorm", "post_mlp_layernorm"], None),
            mlp: MlpKind::Fused,
            rotation: Rotation::PairedPart,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Unknown,
};

/// Default of `mrope_section`.
const SECTIONS: [u64; 3] = [8, 12, 12];

impl GlmOcrConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = s.nested_or_empty("text_config", "GLM-OCR language")?;
        let vision = s.nested_or_empty("vision_config", "GLM-OCR vision")?;
        let mut text = read_text(&text)?;
        text.tie_word_embeddings |= s.flag("tie_word_embeddings", false)?;
        Ok(Self {
            vision: GlmOcrVisionConfig::read(&vision)?,
            text,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], 59_280)?,
        })
    }
}

fn read_text(s: &Section) -> Result<DecoderConfig, ModelError> {
    for key in ["head_dim", "num_key_value_heads"] {
        if s.has(key) {
            s.required(key, "a number, or leave it out")?;
        }
    }
    if let Some(given) = s.value("rope_scaling") {
        return Err(s.wrong("rope_scaling", given, "nothing; write `rope_parameters`"));
    }
    let text = DecoderConfig::read(s, &TEXT)?;
    let table = s.optional_nested("rope_parameters", "rotary embedding")?;
    if let Some(kind) = table
        .and_then(|table| table.value("rope_type"))
        .filter(|kind| **kind != "default")
    {
        return Err(s.wrong("rope_parameters.rope_type", kind, "\"default\""));
    }
    let sections = text.rope.mrope_section.clone().unwrap_or_else(|| SECTIONS.to_vec());
    let half = text.rope.rotated(text.head_dim) / 2;
    if sections.iter().sum::<u64>() != half {
        return Err(s.wrong(
            "rope_parameters.mrope_section",
            &sections.into(),
            &format!("numbers whose sum is {half}, half of what positions turn of a head"),
        ));
    }
    Ok(text)
}

impl GlmOcrVisionConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        // `Glm4vImageProcessor.size`, in tokens of 28 × 28 pixels in two frames.
        let patches = QwenPatches {
            tokens: [8, 7500],
            widens: true,
            ..QwenPatches::read(s, 24, 14)?
        };
        if patches.merge == 1 {
            return Err(s.wrong("spatial_merge_size", &1.into(), "2 or more"));
        }
        let width = s.size("hidden_size", 1024, limits::WIDTH)?;
        s.divide(("hidden_size", width), ("num_heads", patches.heads))?;
        if let Some(given) = s.value("attention_dropout").filter(|given| given.as_f64() != Some(0.0)) {
            return Err(s.wrong("attention_dropout", given, "0: dropout in the tower is not simulated"));
        }
        Ok(Self {
            patches,
            width,
            intermediate: s.size("intermediate_size", 4096, limits::WIDTH * 4)?,
            output: s.size("out_hidden_size", 1536, limits::WIDTH)?,
            activation: s.activation("hidden_act", Activation::Silu)?,
            bias: s.flag("attention_bias", true)?,
        })
    }
}
