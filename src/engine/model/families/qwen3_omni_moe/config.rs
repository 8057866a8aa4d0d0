//! Configuration of the thinker of Qwen3-Omni.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::{
    CHOSEN, ChosenWeights, DecoderConfig, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, HeadRule,
    LlamaModules, Modules, OfDense, SharedKeys, Windows,
};
use crate::model::families::decoders::qwen3_moe;
use crate::model::parts::omni::{AudioConfig, check_tokens};
use crate::model::parts::qwen3_vision::Qwen3VlVisionConfig;

/// Thinker of Qwen3-Omni: an audio encoder, Qwen3-VL's tower, Qwen3 with experts.
///
/// Source: `transformers/models/qwen3_omni_moe/configuration_qwen3_omni_moe.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Qwen3OmniConfig {
    /// The audio encoder.
    pub audio: AudioConfig,
    /// The vision tower.
    pub vision: Qwen3VlVisionConfig,
    /// The language model, with interleaved multimodal rope.
    pub text: DecoderConfig,
}

/// `Qwen3OmniMoeTextConfig`: Qwen3-MoE without windows. Its defaults are those of the class, its vocabulary of 3584 too, which
/// no checkpoint has.
static TEXT: DecoderFamily = DecoderFamily {
    defaults: DecoderDefaults {
        vocab: 3584,
        hidden: 2048,
        intermediate: 18_944,
        layers: 28,
        heads: 28,
        kv_heads: Some(4),
        theta: 1e6,
        ..DecoderDefaults::QWEN2
    },
    heads: HeadRule::Floors,
    windows: Windows::NEVER,
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["num_experts", "num_local_experts"], 128),
            chosen: (CHOSEN, 8),
            intermediate: ("moe_intermediate_size", 768),
            weights: ChosenWeights::MaybeNormalised(true),
            gate_first: false,
            dense: DenseLayers::Listed,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        ..LlamaModules::LLAMA
    }),
    ..qwen3_moe::FAMILY
};

impl Qwen3OmniConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let section = s.nested_or_empty("text_config", "Qwen3-Omni language")?;
        section.only(
            "output_router_logits",
            "false: the loss of the router is not simulated",
            |value| value == false,
        )?;
        let mut text = DecoderConfig::read(&section, &TEXT)?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        check_tokens(s)?;
        let audio = s.nested_or_empty("audio_config", "Qwen3-Omni audio")?;
        let vision = s.nested_or_empty("vision_config", "Qwen3-Omni vision")?;
        Ok(Self {
            audio: AudioConfig::read(&audio, Some(480))?,
            vision: Qwen3VlVisionConfig::read_omni(&vision)?,
            text,
        })
    }
}
