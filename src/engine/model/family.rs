//! Reads the typed configuration of a family by its `model_type`.

use serde_json::{Map, Value};

use super::config::section::Section;
use super::config::*;
use super::{ModelError, architectures};
use crate::suggest::suggest;

/// The typed configuration of a model, one variant for each forward.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelConfig {
    /// GPT-2.
    Gpt2(Gpt2Config),
    /// Llama and decoders like it.
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

/// Function that reads a family's configuration.
type Read = fn(&Section) -> Result<ModelConfig, ModelError>;

/// Each `model_type` that is read, in the order in which messages list them.
const FAMILIES: [(&str, Read); 36] = [
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
    ("cwm", |s| decoder(s, DecoderFamily::Cwm)),
    ("seed_oss", |s| decoder(s, DecoderFamily::SeedOss)),
    ("vaultgemma", |s| decoder(s, DecoderFamily::VaultGemma)),
    ("ernie4_5", |s| decoder(s, DecoderFamily::Ernie45)),
    ("granite", |s| decoder(s, DecoderFamily::Granite)),
    ("helium", |s| decoder(s, DecoderFamily::Helium)),
    ("ministral3", |s| decoder(s, DecoderFamily::Ministral3)),
    ("smollm3", |s| decoder(s, DecoderFamily::SmolLm3)),
];

/// Values of `model_type` that are read, in the order in which messages list them.
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
    /// Reads a whole configuration by its `model_type`.
    ///
    /// No other type is read as one of these: a decoder of another family has norms, biases, experts or layers of its
    /// own, and its file does not describe everything that its class builds.
    pub(super) fn read(object: &Map<String, Value>) -> Result<Self, ModelError> {
        let named = Section::root(object, "Hugging Face").optional_text("model_type")?;
        let Some((model_type, read)) = FAMILIES.iter().find(|(model_type, _)| Some(*model_type) == named) else {
            return Err(unsupported(object, named));
        };
        architectures::check(object, model_type)?;
        read(&Section::root(object, model_type))
    }

    /// Returns true if Llama's forward stands in for one that makes a few tensors more.
    pub fn is_generic(&self) -> bool {
        matches!(self, Self::Decoder(d) if d.family.stands_in())
    }
}

/// Reads the decoder inside a vision-language configuration; `default` is its `model_type` if unstated.
pub(super) fn read_text(s: &Section, default: &str) -> Result<DecoderConfig, ModelError> {
    let given = s.optional_text("model_type")?.unwrap_or(default);
    let read = FAMILIES
        .iter()
        .find(|(model_type, _)| *model_type == given)
        .map(|(_, read)| read(s));
    match read {
        Some(Ok(ModelConfig::Decoder(decoder))) if !decoder.family.stands_in() => Ok(decoder),
        Some(Err(error)) => Err(error),
        _ => Err(s.wrong("model_type", &given.into(), DECODERS)),
    }
}

/// Types that [`read_text`] accepts, for messages.
const DECODERS: &str = "a decoder: llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text or phi3";

fn decoder(s: &Section, family: DecoderFamily) -> Result<ModelConfig, ModelError> {
    DecoderConfig::read(s, family).map(ModelConfig::Decoder)
}

/// Makes the error for a `model_type` that is not read: the nearest one that is, and the next step.
fn unsupported(object: &Map<String, Value>, named: Option<&str>) -> ModelError {
    let supported = MODEL_TYPES.join(", ");
    let Some(name) = named else {
        return ModelError(format!(
            "`model_type` is missing; a config.json states one of {supported}"
        ));
    };
    let nearest = nearest(object, name);
    ModelError(format!(
        "model_type \"{}\" is not supported, and no other is read in its place: its layers may differ (nearest: \
         \"{nearest}\"). Write \"{nearest}\" only where both build the same layers; supported: {supported}",
        shorten(name)
    ))
}

/// Returns the family with the nearest name; else a decoder, or a vision-language model if the file has a vision
/// section.
fn nearest(object: &Map<String, Value>, name: &str) -> &'static str {
    let by_name = suggest(name, &MODEL_TYPES).first().copied();
    by_name.unwrap_or(match object.contains_key("vision_config") {
        true => "llava",
        false => "llama",
    })
}

fn shorten(name: &str) -> String {
    name.chars().take(60).collect()
}
