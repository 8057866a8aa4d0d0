//! From `model_type` to the configuration of a family.

use serde_json::{Map, Value};

use super::ModelError;
use super::config::section::Section;
use super::config::*;
use super::near::near;

/// The typed configuration of a model, one variant for each forward.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelConfig {
    /// GPT-2.
    Gpt2(Gpt2Config),
    /// Llama and the decoders of its line.
    Decoder(DecoderConfig),
    /// OPT.
    Opt(OptConfig),
    /// Phi-1 to Phi-2.
    Phi(PhiConfig),
    /// LLaVA-1.5.
    Llava(LlavaConfig),
    /// LLaVA-NeXT.
    LlavaNext(LlavaNextConfig),
    /// Qwen2-VL.
    Qwen2Vl(Qwen2VlConfig),
    /// Qwen2.5-VL.
    Qwen25Vl(Qwen25VlConfig),
    /// Qwen3-VL.
    Qwen3Vl(Qwen3VlConfig),
    /// InternVL 2.5 and 3.
    InternVl(InternVlConfig),
    /// PaliGemma 1 and 2.
    PaliGemma(PaliGemmaConfig),
    /// Idefics3 and SmolVLM.
    Idefics3(Idefics3Config),
    /// Gemma 3 with vision.
    Gemma3(Gemma3Config),
    /// Llama-3.2-Vision.
    Mllama(MllamaConfig),
    /// BLIP-2.
    Blip2(Blip2Config),
    /// CLIP.
    Clip(ClipConfig),
    /// SigLIP.
    Siglip(SiglipConfig),
    /// ViT for classification.
    Vit(VitConfig),
    /// VideoMAE for classification.
    VideoMae(VideoMaeConfig),
}

/// How a family's configuration is read.
type Read = fn(&Section) -> Result<ModelConfig, ModelError>;

/// Each `model_type` that is read, in the order of messages.
const FAMILIES: [(&str, Read); 28] = [
    ("llava", |s| LlavaConfig::read(s).map(ModelConfig::Llava)),
    ("llava_next", |s| LlavaNextConfig::read(s).map(ModelConfig::LlavaNext)),
    ("qwen2_vl", |s| Qwen2VlConfig::read(s).map(ModelConfig::Qwen2Vl)),
    ("qwen2_5_vl", |s| Qwen25VlConfig::read(s).map(ModelConfig::Qwen25Vl)),
    ("qwen3_vl", |s| Qwen3VlConfig::read(s).map(ModelConfig::Qwen3Vl)),
    ("internvl", |s| InternVlConfig::read(s).map(ModelConfig::InternVl)),
    ("internvl_chat", |s| {
        InternVlConfig::read_chat(s).map(ModelConfig::InternVl)
    }),
    ("paligemma", |s| PaliGemmaConfig::read(s).map(ModelConfig::PaliGemma)),
    ("smolvlm", |s| Idefics3Config::read(s, true).map(ModelConfig::Idefics3)),
    ("idefics3", |s| {
        Idefics3Config::read(s, false).map(ModelConfig::Idefics3)
    }),
    ("gemma3", |s| Gemma3Config::read(s).map(ModelConfig::Gemma3)),
    ("mllama", |s| MllamaConfig::read(s).map(ModelConfig::Mllama)),
    ("blip-2", |s| Blip2Config::read(s).map(ModelConfig::Blip2)),
    ("clip", |s| ClipConfig::read(s).map(ModelConfig::Clip)),
    ("siglip", |s| SiglipConfig::read(s).map(ModelConfig::Siglip)),
    ("vit", |s| VitConfig::read(s).map(ModelConfig::Vit)),
    ("videomae", |s| VideoMaeConfig::read(s).map(ModelConfig::VideoMae)),
    ("gpt2", |s| Gpt2Config::read(s).map(ModelConfig::Gpt2)),
    ("opt", |s| OptConfig::read(s).map(ModelConfig::Opt)),
    ("phi", |s| PhiConfig::read(s).map(ModelConfig::Phi)),
    ("llama", |s| decoder(s, DecoderFamily::Llama)),
    ("mistral", |s| decoder(s, DecoderFamily::Mistral)),
    ("qwen2", |s| decoder(s, DecoderFamily::Qwen2)),
    ("qwen3", |s| decoder(s, DecoderFamily::Qwen3)),
    ("gemma", |s| decoder(s, DecoderFamily::Gemma)),
    ("gemma2", |s| decoder(s, DecoderFamily::Gemma2)),
    ("gemma3_text", |s| decoder(s, DecoderFamily::Gemma3)),
    ("phi3", |s| decoder(s, DecoderFamily::Phi3)),
];

/// Values of `model_type` that are read, in the order of messages.
pub const MODEL_TYPES: [&str; FAMILIES.len()] = {
    let mut names = [""; FAMILIES.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = FAMILIES[i].0;
        i += 1;
    }
    names
};

impl ModelConfig {
    /// Reads a whole configuration by its `model_type`; an unknown decoder with a Llama's keys is
    /// read as [`DecoderFamily::Generic`].
    pub(super) fn read(object: &Map<String, Value>) -> Result<Self, ModelError> {
        let named = Section::root(object, "Hugging Face").optional_text("model_type")?;
        match FAMILIES.iter().find(|(model_type, _)| Some(*model_type) == named) {
            Some((model_type, read)) => read(&Section::root(object, model_type)),
            None => read_generic(object, named),
        }
    }

    /// Whether the `model_type` is unknown and a Llama's forward stands in.
    pub fn is_generic(&self) -> bool {
        matches!(self, Self::Decoder(d) if d.family == DecoderFamily::Generic)
    }
}

/// The decoder inside a vision-language configuration; `default` is its `model_type` if unstated.
pub(super) fn read_text(s: &Section, default: &str) -> Result<DecoderConfig, ModelError> {
    let given = s.optional_text("model_type")?.unwrap_or(default);
    let read = FAMILIES
        .iter()
        .find(|(model_type, _)| *model_type == given)
        .map(|(_, read)| read(s));
    match read {
        Some(Ok(ModelConfig::Decoder(decoder))) => Ok(decoder),
        Some(Err(error)) => Err(error),
        _ => Err(s.wrong("model_type", &given.into(), DECODERS)),
    }
}

/// What [`read_text`] reads.
const DECODERS: &str = "a decoder: llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text or phi3";

fn decoder(s: &Section, family: DecoderFamily) -> Result<ModelConfig, ModelError> {
    DecoderConfig::read(s, family).map(ModelConfig::Decoder)
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
