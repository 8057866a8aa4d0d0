//! Configuration of Qwen3-VL, Qwen3-VL-MoE and Cosmos 3 Omni.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::{
    CHOSEN, ChosenWeights, DecoderConfig, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, LlamaModules,
    Modules, OfDense, SharedKeys, Windows,
};
use crate::model::families::decoders::{qwen3, qwen3_moe};
use crate::model::libraries::Liger;
use crate::model::parts::qwen3_vision::Qwen3VlVisionConfig;

/// Qwen3-VL: a tower with learned and rotary positions whose inner layers also feed the first
/// layers of the language model (deepstack), Qwen3 with MLPs or experts.
///
/// Source: `transformers/models/qwen3_vl/configuration_qwen3_vl.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Qwen3VlConfig {
    /// The vision tower.
    pub vision: Qwen3VlVisionConfig,
    /// The language model, with interleaved multimodal rope.
    pub text: DecoderConfig,
    /// Token id that image features replace.
    pub image_token: u64,
    /// Effect of Liger on the forward of the model's class.
    pub liger: Liger,
}

/// `Qwen3VLTextConfig`.
const TEXT_DEFAULTS: DecoderDefaults = DecoderDefaults {
    head_dim: Some(128),
    max_positions: 128_000,
    theta: 5e5,
    ..DecoderDefaults::QWEN2
};

/// `Qwen3VLMoeTextConfig`: Qwen3-MoE without windows, with weights that are always normalised. It has the name of
/// Qwen3-MoE, whose blocks it has too.
static MOE: DecoderFamily = DecoderFamily {
    defaults: DecoderDefaults {
        hidden: 2048,
        intermediate: 5632,
        layers: 24,
        heads: 16,
        kv_heads: Some(16),
        max_positions: 128_000,
        theta: 5e5,
        ..DecoderDefaults::QWEN2
    },
    windows: Windows::NEVER,
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["num_experts", "num_local_experts"], 60),
            chosen: (CHOSEN, 4),
            intermediate: ("moe_intermediate_size", 1408),
            weights: ChosenWeights::Normalised,
            gate_first: false,
            dense: DenseLayers::Listed,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        ..LlamaModules::LLAMA
    }),
    ..qwen3_moe::FAMILY
};

impl Qwen3VlConfig {
    /// Reads Qwen3-VL, Qwen3-VL-MoE, or Cosmos 3 Omni, which takes any language model and tower; only Qwen3-VL's are
    /// simulated.
    pub(crate) fn read(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        let text = s.nested("text_config", "Qwen3-VL language")?;
        let vision = s.nested("vision_config", "Qwen3-VL vision")?;
        if model_type == "cosmos3_omni" {
            text.expect_model_type(&["qwen3_vl_text"])?;
            vision.expect_model_type(&["qwen3_vl_vision", "qwen3_vl"])?;
        }
        let (family, defaults, liger) = match model_type {
            "qwen3_vl_moe" => (&MOE, &MOE.defaults, Liger::NotSimulated),
            "cosmos3_omni" => (&qwen3::FAMILY, &TEXT_DEFAULTS, Liger::Unknown),
            _ => (&qwen3::FAMILY, &TEXT_DEFAULTS, Liger::Replaces),
        };
        let mut text = DecoderConfig::read_with(&text, family, defaults)?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        Ok(Self {
            vision: Qwen3VlVisionConfig::read(&vision, true)?,
            text,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], 151_655)?,
            liger,
        })
    }
}
