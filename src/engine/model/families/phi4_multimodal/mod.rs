//! Phi-4-multimodal without images and sound (`transformers/models/phi4_multimodal`).

mod forward;
mod towers;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::{
    Biases, DecoderConfig, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, MlpKind, Modules, WindowLength,
    Windows,
};
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::text::{TextFamily, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[ROW.model_type],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// The language model, as differences to Llama's.
static ROW: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("phi4_multimodal", &["Phi4MultimodalForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 200_064,
        hidden: 3072,
        intermediate: 8192,
        kv_heads: Some(8),
        max_positions: 131_072,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        let vocab = s.size("vocab_size", 200_064, limits::VOCAB)?;
        if !s.has("pad_token_id") && vocab <= 199_999 {
            let allowed = "more than 199999, the default of pad_token_id";
            return Err(s.wrong("vocab_size", &vocab.into(), allowed));
        }
        Ok(Biases::NONE)
    },
    windows: Windows::of_every_layer(WindowLength::Given),
    residual_dropout: Some(("resid_pdrop", 0.0)),
    modules: Modules::Llama(LlamaModules {
        one_mask: true,
        partial_rotary: true,
        block: LlamaBlock {
            mlp: MlpKind::Fused,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};

/// Phi-4-multimodal: Phi-3's decoder, beside towers of images and of sound that no text passes.
#[derive(Debug, Clone, PartialEq)]
pub struct Phi4MultimodalConfig {
    /// The language model.
    pub text: DecoderConfig,
    /// Tower of images.
    pub vision: towers::VisionSizes,
    /// Tower of sound.
    pub audio: towers::AudioSizes,
}

impl TextFamily for Phi4MultimodalConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            text: DecoderConfig::read(s, &ROW)?,
            vision: towers::VisionSizes::read(&s.nested_or_empty("vision_config", "Phi-4-multimodal vision")?)?,
            audio: towers::AudioSizes::read(&s.nested_or_empty("audio_config", "Phi-4-multimodal audio")?)?,
        })
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Phi4Multimodal::new(b, self))
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.text.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_decoder(&self.text)
    }

    /// peft finds linear layers of the towers too, which were not compared.
    fn libraries(&self) -> TextSupport {
        TextSupport {
            adapters: AdapterMaps::None,
            liger: Liger::Unknown,
            no_flash: Some(NoFlash::NotSimulated),
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
