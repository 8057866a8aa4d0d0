//! Configuration of GLM-4V, GLM-4.5V and GLM-OCR.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits, rope};
use crate::model::decoder::{
    Biases, DecoderConfig, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, MlpKind, Modules,
    NormPlacement, Rotation, SoftCaps, Windows, not_null,
};
use crate::model::facts::ModelType;
use crate::model::families::decoders::glm4_moe;
use crate::model::libraries::Liger;
use crate::model::parts::qwen_vl::{QwenPatches, Resize, Widening};

/// GLM-4V and GLM-OCR: a tower like Qwen2.5-VL's, a convolution that joins patches, a gated merger, and GLM-4's decoder
/// (GLM-4.5's in GLM-4.5V) with multimodal rope.
///
/// Sources: `transformers/models/{glm4v,glm4v_moe,glm46v,glmga,glm_ocr}/configuration_*.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Glm4vConfig {
    /// The vision tower.
    pub vision: Glm4vVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Token id that image features replace.
    pub image_token: u64,
}

/// Vision tower of GLM-4V or GLM-OCR.
#[derive(Debug, Clone, PartialEq)]
pub struct Glm4vVisionConfig {
    /// Blocks and patches.
    pub patches: QwenPatches,
    /// Width of the residual stream.
    pub width: u64,
    /// Width inside the gated MLP.
    pub intermediate: u64,
    /// Width inside the merger.
    pub merger: u64,
    /// Width of the joined patches, and of the merger's output: the language model's.
    pub output: u64,
    /// Activation of the gates.
    pub activation: Activation,
    /// True if the projections of queries, keys and values have biases.
    pub bias: bool,
    /// Side of the square grid of learned positions, which is interpolated to the image's grid. GLM-OCR has none; its tower
    /// has norms of queries and keys, and all projections of a block have biases if some have.
    pub side: Option<u64>,
}

/// `GlmOcrTextModel`.
static OCR_TEXT: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "glm_ocr_text",
        classes: &[],
    },
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
    biases: |_| Ok(Biases::NONE),
    ..TEXT
};

/// `Glm4vTextModel`.
const TEXT: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "glm4v_text",
        classes: &[],
    },
    catalogue: &[],
    defaults: DecoderDefaults {
        vocab: 151_552,
        intermediate: 13_696,
        layers: 40,
        kv_heads: Some(2),
        max_positions: 32_768,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Free,
    biases: |_| {
        Ok(Biases {
            qkv: true,
            ..Biases::NONE
        })
    },
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
    own: DecoderFamily::USUAL.own,
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Unknown,
};

static GLM4V_TEXT: DecoderFamily = TEXT;

/// `Glm4vMoeTextModel`, whose blocks are GLM-4.5's.
static MOE_TEXT: DecoderFamily = DecoderFamily {
    defaults: DecoderDefaults {
        vocab: 151_424,
        max_positions: 65_536,
        ..glm4_moe::FAMILY.defaults
    },
    biases: |s| {
        not_null(s, &["num_experts_per_tok", "n_shared_experts", "first_k_dense_replace"])?;
        Ok(Biases {
            qkv: s.flag("attention_bias", true)?,
            ..Biases::NONE
        })
    },
    qk_norm: false,
    modules: Modules::Llama(LlamaModules {
        partial_rotary: true,
        experts: Some(&glm4_moe::EXPERTS),
        block: glm4_moe::FAMILY.block(),
        ..LlamaModules::LLAMA
    }),
    ..glm4_moe::FAMILY
};

/// Default of `mrope_section`.
const SECTIONS: [u64; 3] = [8, 12, 12];

impl Glm4vConfig {
    /// Reads `Glm4vConfig`, `Glm46VConfig`, `GlmgaConfig` or `GlmOcrConfig`.
    pub(crate) fn read(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        let text = s.nested_or_empty("text_config", "GLM-4V language")?;
        let vision = s.nested_or_empty("vision_config", "GLM-4V vision")?;
        // `Glm46VConfig` and `GlmgaConfig` take parts of any type, and do not read the tie of the language model's.
        let takes_any = matches!(model_type, "glm46v" | "glmga");
        if takes_any {
            text.expect_model_type(&["glm4v_text"])?;
            vision.expect_model_type(&["glm4v_vision"])?;
        }
        let tied = s.flag("tie_word_embeddings", false)?;
        let family = match model_type {
            "glm_ocr" => &OCR_TEXT,
            "glm4v_moe" => &MOE_TEXT,
            _ => &GLM4V_TEXT,
        };
        let mut decoder = read_text(&text, family)?;
        decoder.tie_word_embeddings = tied || !takes_any && decoder.tie_word_embeddings;
        let (vision, image_token) = match model_type {
            "glm_ocr" => (Glm4vVisionConfig::read_ocr(&vision)?, 59_280),
            "glm4v_moe" => (Glm4vVisionConfig::read(&vision)?, 151_363),
            _ => (Glm4vVisionConfig::read(&vision)?, 151_343),
        };
        Ok(Self {
            vision,
            text: decoder,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], image_token)?,
        })
    }
}

fn read_text(s: &Section, family: &'static DecoderFamily) -> Result<DecoderConfig, ModelError> {
    for key in ["head_dim", "num_key_value_heads"] {
        if s.has(key) {
            s.required(key, "a number, or leave it out")?;
        }
    }
    // GLM-4V's attention does not read it, and its rotary embedding does.
    if let Some(given) = s.value("head_dim").filter(|_| *family == GLM4V_TEXT) {
        let allowed = "none: its heads have hidden_size ÷ num_attention_heads elements";
        return Err(s.wrong("head_dim", given, allowed));
    }
    rope::unscaled_table(s)?;
    let text = DecoderConfig::read(s, family)?;
    let sections = text.rope.mrope_section.clone().unwrap_or_else(|| SECTIONS.to_vec());
    let half = text.rope.rotated(text.head_dim).div_ceil(2);
    if sections.iter().sum::<u64>() != half {
        return Err(s.wrong(
            "rope_parameters.mrope_section",
            &sections.into(),
            &format!("numbers whose sum is {half}, half of what positions turn of a head"),
        ));
    }
    Ok(text)
}

impl Glm4vVisionConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        let patches = read_patches(s, 12)?;
        let image = s.side("image_size", 336, limits::PIXELS)?;
        let side = image / patches.patch;
        if side == 0 {
            return Err(s.wrong("image_size", &image.into(), "at least patch_size"));
        }
        let output = s.size("out_hidden_size", 4096, limits::WIDTH)?;
        Ok(Self {
            patches,
            width: read_width(s, &patches, 1536)?,
            intermediate: output,
            merger: s.size("intermediate_size", 13_696, limits::WIDTH * 4)?,
            output,
            activation: s.activation("hidden_act", Activation::Silu)?,
            bias: s.flag("attention_bias", false)?,
            side: Some(side),
        })
    }

    fn read_ocr(s: &Section) -> Result<Self, ModelError> {
        let patches = read_patches(s, 16)?;
        let output = s.size("out_hidden_size", 1536, limits::WIDTH)?;
        Ok(Self {
            patches,
            width: read_width(s, &patches, 1024)?,
            intermediate: s.size("intermediate_size", 4096, limits::WIDTH * 4)?,
            merger: output * patches.channels,
            output,
            activation: s.activation("hidden_act", Activation::Silu)?,
            bias: s.flag("attention_bias", true)?,
            side: None,
        })
    }
}

fn read_width(s: &Section, patches: &QwenPatches, default: u64) -> Result<u64, ModelError> {
    let width = s.size("hidden_size", default, limits::WIDTH)?;
    s.divide(("hidden_size", width), ("num_heads", patches.heads))?;
    Ok(width)
}

/// Reads the patches of a tower whose class has this default number of heads.
fn read_patches(s: &Section, heads: u64) -> Result<QwenPatches, ModelError> {
    let mut patches = QwenPatches::read(s, 24, 14)?;
    patches.heads = s.size_of_either(["num_heads", "num_attention_heads"], heads, limits::HEADS)?;
    // `Glm4vImageProcessor.size`, in tokens of 28 × 28 pixels in two frames.
    patches.resize = Resize::of_tokens([8, 7500], patches.patch * patches.merge, Widening::Cut);
    if patches.merge == 1 {
        return Err(s.wrong("spatial_merge_size", &1.into(), "2 or more"));
    }
    s.only("attention_dropout", "0: dropout in the tower is not simulated", |p| {
        p.as_f64() == Some(0.0)
    })?;
    Ok(patches)
}
