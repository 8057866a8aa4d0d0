//! From `model_type` to the configuration of a family.

use serde_json::{Map, Value};

use super::ModelError;
use super::config::section::Section;
use super::config::{DecoderConfig, DecoderFamily, Gpt2Config, LlavaConfig};
use super::near::near;

/// The typed configuration of a model, one variant for each forward.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelConfig {
    /// GPT-2.
    Gpt2(Gpt2Config),
    /// Llama and the decoders of its line.
    Decoder(DecoderConfig),
    /// LLaVA-1.5.
    Llava(LlavaConfig),
}

/// Values of `model_type` that are read, in the order of messages.
pub const MODEL_TYPES: [&str; 10] = [
    "gpt2",
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2",
    "gemma3_text",
    "phi3",
    "llava",
];

impl ModelConfig {
    /// Reads a whole configuration by its `model_type`; an unknown decoder with a Llama's keys is
    /// read as [`DecoderFamily::Generic`].
    pub(super) fn read(object: &Map<String, Value>) -> Result<Self, ModelError> {
        let named = Section::root(object, "Hugging Face").optional_text("model_type")?;
        let Some(&model_type) = MODEL_TYPES.iter().find(|t| Some(**t) == named) else {
            return read_generic(object, named);
        };
        let s = Section::root(object, model_type);
        match model_type {
            "gpt2" => Gpt2Config::read(&s).map(Self::Gpt2),
            "llava" => LlavaConfig::read(&s).map(Self::Llava),
            _ => read_decoder(&s, model_type).map(Self::Decoder),
        }
    }

    /// Whether the `model_type` is unknown and a Llama's forward stands in.
    pub fn is_generic(&self) -> bool {
        matches!(self, Self::Decoder(d) if d.family == DecoderFamily::Generic)
    }
}

/// The decoder inside a vision-language configuration.
pub(super) fn read_text(s: &Section) -> Result<DecoderConfig, ModelError> {
    read_decoder(s, s.optional_text("model_type")?.unwrap_or("llama"))
}

fn read_decoder(s: &Section, model_type: &str) -> Result<DecoderConfig, ModelError> {
    let family = match model_type {
        "llama" => DecoderFamily::Llama,
        "mistral" => DecoderFamily::Mistral,
        "qwen2" => DecoderFamily::Qwen2,
        "qwen3" => DecoderFamily::Qwen3,
        "gemma" => DecoderFamily::Gemma,
        "gemma2" => DecoderFamily::Gemma2,
        "gemma3_text" => DecoderFamily::Gemma3,
        "phi3" => DecoderFamily::Phi3,
        other => {
            return Err(s.wrong(
                "model_type",
                &other.into(),
                "a decoder: llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text or phi3",
            ));
        }
    };
    DecoderConfig::read(s, family)
}

/// Keys that a decoder of the Llama line has.
const STANDARD_KEYS: [&str; 6] = [
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "rms_norm_eps",
];

/// Keys of parts that a generic decoder does not have; to ignore them would give wrong bytes.
const FOREIGN_KEYS: [&str; 9] = [
    "vision_config",
    "audio_config",
    "text_config",
    "num_experts",
    "num_local_experts",
    "n_routed_experts",
    "kv_lora_rank",
    "state_size",
    "layer_block_type",
];

fn read_generic(object: &Map<String, Value>, named: Option<&str>) -> Result<ModelConfig, ModelError> {
    let s = Section::root(object, "decoder");
    let standard = STANDARD_KEYS.iter().all(|key| s.value(key).is_some());
    let foreign = FOREIGN_KEYS.iter().any(|key| s.value(key).is_some());
    if standard && !foreign && !s.flag("is_encoder_decoder", false)? {
        return DecoderConfig::read(&s, DecoderFamily::Generic).map(ModelConfig::Decoder);
    }
    let supported = MODEL_TYPES.join(", ");
    Err(ModelError(match named {
        None => format!("`model_type` is missing; a config.json states one of {supported}"),
        Some(name) => format!(
            "model_type \"{}\" is not supported{}; supported: {supported}",
            shorten(name),
            hint(name)
        ),
    }))
}

fn hint(name: &str) -> String {
    match near(name, &MODEL_TYPES).first() {
        Some(close) => format!(" (did you mean \"{close}\"?)"),
        None => String::new(),
    }
}

fn shorten(name: &str) -> String {
    name.chars().take(60).collect()
}
