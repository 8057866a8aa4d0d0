//! Registry of model families: one folder and one row for each.
//!
//! A family's folder holds its configuration, its forward, what it answers as a [`Family`], and the `config.json` files of
//! the models that are known by name. Decoders like Llama's share their configuration and modules; their registry is
//! [`decoders`].

pub mod aya_vision;
pub mod bart;
pub mod bert;
pub mod biogpt;
pub mod blip2;
pub mod clip;
pub(crate) mod decoders;
pub mod deepseek_vl;
pub mod gemma3;
pub mod gemma4;
pub mod gemma4_text;
pub mod gpt;
pub mod gpt2;
pub mod gpt_neox;
pub mod idefics;
pub mod idefics2;
pub mod idefics3;
pub mod internvl;
pub mod janus;
pub mod kosmos2;
pub mod lfm2;
pub mod llama4;
pub mod llava;
pub mod llava_next;
pub mod mistral3;
pub mod mllama;
pub mod opt;
pub mod paligemma;
pub mod persimmon;
pub mod phi;
pub mod qwen2_5_vl;
pub mod qwen2_vl;
pub mod qwen3_5;
pub mod qwen3_5_text;
pub mod qwen3_vl;
pub mod siglip;
pub mod stablelm;
pub mod video_llava;
pub mod videomae;
pub mod vipllava;
pub mod vit;
pub mod xglm;

use super::ModelError;
use super::config::section::Section;
use super::decoder::DecoderConfig;
use super::facts::{Entry, Facts, ModelType};
use super::family::Family;
use super::forward::Forward;
use super::parts::delta_decoder::DeltaDecoderConfig;
use super::parts::lfm2_decoder::Lfm2Config;
use crate::nn::Builder;

/// Family as the registry knows it.
struct Row {
    facts: fn() -> &'static Facts,
    read: fn(&str, &Section) -> Result<ModelConfig, ModelError>,
}

/// A `model_type` and the family that reads it.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    pub model_type: &'static ModelType,
    row: &'static Row,
}

/// Makes the configuration of any family, and the table of all, from rows of a variant and its configuration.
macro_rules! families {
    ($($(#[$doc:meta])+ $variant:ident($config:ty)),+ $(,)?) => {
        /// The typed configuration of a model, one variant for each family.
        #[derive(Debug, Clone, PartialEq)]
        pub enum ModelConfig {
            $($(#[$doc])+ $variant($config)),+
        }

        /// Families in the order in which messages list their types.
        static FAMILIES: &[Row] = &[$(Row {
            facts: <$config as Family>::facts,
            read: |model_type, s| <$config as Family>::read_config(model_type, s).map(ModelConfig::$variant),
        }),+];

        impl ModelConfig {
            /// What the family answers.
            pub(crate) fn family(&self) -> &dyn Family {
                match self {
                    $(Self::$variant(config) => config),+
                }
            }

            /// Makes the parameters. Only [`super::lazy`] calls this: whatever does contains the code of all families.
            pub(super) fn build(&self, b: &Builder) -> Box<dyn Forward> {
                match self {
                    $(Self::$variant(config) => config.build(b)),+
                }
            }
        }
    };
}

families! {
    /// LLaVA-1.5.
    Llava(llava::LlavaConfig),
    /// VipLLaVA.
    VipLlava(vipllava::VipLlavaConfig),
    /// Video-LLaVA.
    VideoLlava(video_llava::VideoLlavaConfig),
    /// LLaVA-NeXT, LLaVA-NeXT-Video and LLaVA-OneVision.
    LlavaNext(llava_next::LlavaNextConfig),
    /// Qwen2-VL.
    Qwen2Vl(qwen2_vl::Qwen2VlConfig),
    /// Qwen2.5-VL.
    Qwen25Vl(qwen2_5_vl::Qwen25VlConfig),
    /// Qwen3-VL.
    Qwen3Vl(qwen3_vl::Qwen3VlConfig),
    /// Qwen3.5.
    Qwen35(qwen3_5::Qwen35Config),
    /// Qwen3.5's language model.
    Qwen35Text(DeltaDecoderConfig),
    /// InternVL 2.5 and 3, and Qianfan-OCR.
    InternVl(internvl::InternVlConfig),
    /// Aya Vision.
    AyaVision(aya_vision::AyaVisionConfig),
    /// DeepSeek-VL.
    DeepseekVl(deepseek_vl::DeepseekVlConfig),
    /// Mistral 3 and LightOnOCR.
    Mistral3(mistral3::Mistral3Config),
    /// Janus.
    Janus(janus::JanusConfig),
    /// KOSMOS-2 and KOSMOS-2.5.
    Kosmos2(kosmos2::Kosmos2Config),
    /// Llama 4.
    Llama4(llama4::Llama4Config),
    /// Llama 4's language model.
    Llama4Text(llama4::Llama4TextConfig),
    /// PaliGemma 1 and 2.
    PaliGemma(paligemma::PaliGemmaConfig),
    /// IDEFICS.
    Idefics(idefics::IdeficsConfig),
    /// Idefics2.
    Idefics2(idefics2::Idefics2Config),
    /// Idefics3 and SmolVLM.
    Idefics3(idefics3::Idefics3Config),
    /// Gemma 3 with vision.
    Gemma3(gemma3::Gemma3Config),
    /// Gemma 4 with images: the unified models.
    Gemma4(gemma4::Gemma4Config),
    /// Gemma 4's language models.
    Gemma4Text(gemma4_text::Gemma4TextConfig),
    /// Llama-3.2-Vision.
    Mllama(mllama::MllamaConfig),
    /// BLIP-2.
    Blip2(blip2::Blip2Config),
    /// CLIP.
    Clip(clip::ClipConfig),
    /// SigLIP.
    Siglip(siglip::SiglipConfig),
    /// ViT for classification.
    Vit(vit::VitConfig),
    /// VideoMAE for classification.
    VideoMae(videomae::VideoMaeConfig),
    /// GPT-2.
    Gpt2(gpt2::Gpt2Config),
    /// OPT.
    Opt(opt::OptConfig),
    /// Phi-1 to Phi-2.
    Phi(phi::PhiConfig),
    /// BERT and its kin.
    Bert(bert::BertConfig),
    /// BioGPT.
    BioGpt(biogpt::BioGptConfig),
    /// XGLM.
    Xglm(xglm::XglmConfig),
    /// GPTBigCode, GPT-Neo, GPT-J and CodeGen.
    Gpt(gpt::GptConfig),
    /// GPT-NeoX.
    GptNeox(gpt_neox::GptNeoxConfig),
    /// StableLM.
    StableLm(stablelm::StableLmConfig),
    /// Persimmon.
    Persimmon(persimmon::PersimmonConfig),
    /// Decoders of BART and other encoder-decoder models, alone.
    Bart(bart::BartConfig),
    /// LFM2.
    Lfm2(Lfm2Config),
    /// Decoders like Llama's: those of [`decoders`].
    Decoder(DecoderConfig),
}

/// Every `model_type` that is read, in the order in which messages list them.
pub(crate) fn model_types() -> impl Iterator<Item = &'static ModelType> {
    FAMILIES.iter().flat_map(|row| (row.facts)().model_types)
}

/// Models known by name, family by family.
pub(crate) fn entries() -> impl Iterator<Item = &'static Entry> {
    let of_families = FAMILIES.iter().flat_map(|row| (row.facts)().catalogue);
    of_families.chain(decoders::entries())
}

/// Finds the family that reads a `model_type`.
pub(crate) fn known(model_type: &str) -> Option<Known> {
    FAMILIES.iter().find_map(|row| {
        let types = (row.facts)().model_types;
        let model_type = types.iter().find(|known| known.name == model_type)?;
        Some(Known { model_type, row })
    })
}

impl Known {
    /// Facts of the family.
    pub fn facts(self) -> &'static Facts {
        (self.row.facts)()
    }

    /// Reads a configuration of this type.
    pub fn read(self, s: &Section) -> Result<ModelConfig, ModelError> {
        (self.row.read)(self.model_type.name, s)
    }
}
