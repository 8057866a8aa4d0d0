//! Typed configurations, one file per family, read from Hugging Face `config.json` values.
//!
//! Absent keys take the defaults of transformers 5.17's configuration classes, except that a whole `config.json` must
//! state its own sizes: a default there would silently be another model.

mod activation;
mod anyres;
mod blip2;
mod clip;
mod clip_vision;
mod decoder;
mod encoder;
mod gemma3;
mod gpt2;
mod idefics3;
mod internvl;
mod limits;
mod llava;
mod llava_next;
mod mllama;
mod opt;
mod paligemma;
mod phi;
mod qwen2_5_vl;
mod qwen2_vl;
mod qwen3_vl;
mod qwen_vision;
mod rope;
pub(crate) mod section;
mod siglip;
mod siglip_vision;
mod videomae;
mod vit;

pub use crate::nn::Activation;
pub use anyres::AnyRes;
pub use blip2::{Blip2Config, Blip2VisionConfig, QFormerConfig};
pub use clip::{ClipConfig, ClipTextConfig};
pub use clip_vision::ClipVisionConfig;
pub use decoder::{DecoderConfig, DecoderFamily};
pub use encoder::{EncoderShape, PatchGrid};
pub use gemma3::Gemma3Config;
pub use gpt2::Gpt2Config;
pub use idefics3::{Idefics3Config, Idefics3VisionConfig};
pub use internvl::{InternVlConfig, InternVlVisionConfig};
pub use llava::{FeatureSelect, LlavaConfig};
pub use llava_next::LlavaNextConfig;
pub use mllama::{MllamaConfig, MllamaVisionConfig};
pub use opt::OptConfig;
pub use paligemma::PaliGemmaConfig;
pub use phi::PhiConfig;
pub use qwen_vision::QwenPatches;
pub use qwen2_5_vl::{Qwen25VlConfig, Qwen25VlVisionConfig};
pub use qwen2_vl::{Qwen2VlConfig, Qwen2VlVisionConfig};
pub use qwen3_vl::{Qwen3VlConfig, Qwen3VlVisionConfig};
pub use rope::{Rope, RopeKind};
pub use siglip::{SiglipConfig, SiglipTextConfig};
pub use siglip_vision::SiglipVisionConfig;
pub use videomae::VideoMaeConfig;
pub use vit::VitConfig;
