//! Configuration of Qwen3-VL and Cosmos 3 Omni.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::{DecoderConfig, DecoderDefaults};
use crate::model::families::decoders::qwen3;
use crate::model::libraries::Liger;
use crate::model::parts::qwen3_vision::Qwen3VlVisionConfig;

/// Qwen3-VL: a tower with learned and rotary positions whose inner layers also feed the first
/// layers of the language model (deepstack), Qwen3.
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
    /// What Liger does with the forward of the model's class.
    pub liger: Liger,
}

/// `Qwen3VLTextConfig`.
const TEXT_DEFAULTS: DecoderDefaults = DecoderDefaults {
    head_dim: Some(128),
    max_positions: 128_000,
    theta: 5e5,
    ..DecoderDefaults::QWEN2
};

impl Qwen3VlConfig {
    /// Reads `Qwen3VLConfig` or `Cosmos3OmniConfig`, which takes any language model and tower; only Qwen3-VL's are simulated.
    pub(crate) fn read(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        let text = s.nested("text_config", "Qwen3-VL language")?;
        let vision = s.nested("vision_config", "Qwen3-VL vision")?;
        let is_cosmos = model_type == "cosmos3_omni";
        if is_cosmos {
            text.expect_model_type(&["qwen3_vl_text"])?;
            vision.expect_model_type(&["qwen3_vl_vision", "qwen3_vl"])?;
        }
        let mut text = DecoderConfig::read_with(&text, &qwen3::FAMILY, &TEXT_DEFAULTS)?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        Ok(Self {
            vision: Qwen3VlVisionConfig::read(&vision, true)?,
            text,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], 151_655)?,
            liger: if is_cosmos { Liger::Unknown } else { Liger::Replaces },
        })
    }
}
