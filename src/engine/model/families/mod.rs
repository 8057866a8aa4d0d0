//! Registry of model families: one folder and one row for each.
//!
//! A family's folder holds its configuration, its forward, what it answers as a [`Family`], and the `config.json` files of
//! the models that are known by name. Decoders like Llama's share their configuration and modules; their registry is
//! [`decoders`].

pub mod aria;
pub mod aya_vision;
pub mod bart;
pub mod bert;
pub mod biogpt;
pub mod blip;
pub mod blip2;
pub mod bloom;
pub mod clip;
pub mod cosmos3_edge;
pub mod cpmant;
pub mod ctrl;
pub(crate) mod decoders;
pub mod deepseek_vl;
pub mod deepseek_vl_hybrid;
pub mod deepseek_vl_v2;
pub mod ernie4_5_vl;
pub mod exaone4_5;
pub mod falcon;
pub mod fuyu;
pub mod gemma3;
pub mod gemma3n_text;
pub mod gemma4;
pub mod gemma4_text;
pub mod git;
pub mod glm4v;
pub mod got_ocr2;
pub mod gpt;
pub mod gpt2;
pub mod gpt_neox;
pub mod gpt_neox_japanese;
pub mod granite4_vision;
pub mod hrm_text;
pub mod idefics;
pub mod idefics2;
pub mod idefics3;
pub mod instructblip;
pub mod internvl;
pub mod janus;
pub mod jetmoe;
pub mod kimi_k25;
pub mod kimi_linear;
pub mod kosmos2;
pub mod lfm2;
pub mod lfm2_vl;
pub mod llama4;
pub mod llava;
pub mod llava_next;
pub mod mamba;
pub mod mamba_hybrid;
pub mod minicpmv4_6;
pub mod minimax;
pub mod minimax_m3_vl;
pub mod mistral3;
pub mod mllama;
pub mod modernbert_decoder;
pub mod moshi;
pub mod mpt;
pub mod muse_glimmer;
pub mod olmo_hybrid;
pub mod openai_gpt;
pub mod opt;
pub mod ovis2;
pub mod ovis2_5;
pub mod paddleocr_vl;
pub mod paligemma;
pub mod persimmon;
pub mod phi;
pub mod phi4_multimodal;
pub mod pix2struct;
pub mod pp_formulanet;
pub mod prophetnet;
pub mod qwen2_5_omni;
pub mod qwen2_5_vl;
pub mod qwen2_vl;
pub mod qwen3_5;
pub mod qwen3_5_text;
pub mod qwen3_omni_moe;
pub mod qwen3_vl;
pub mod recurrent_gemma;
pub mod siglip;
pub mod stablelm;
pub mod video_llama_3;
pub mod video_llava;
pub mod video_resnet;
pub mod videomae;
pub mod vipllava;
pub mod vit;
pub mod xglm;
pub mod xlm;
pub mod zamba;
pub mod zamba2;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::ModelError;
use super::config::section::Section;
use super::decoder::DecoderConfig;
use super::facts::{Entry, Facts, ModelType, Name, names};
use super::family::{Family, Registered};
use super::lazy::LazyGroup;
use super::parts::delta_decoder::DeltaDecoderConfig;
use super::parts::lfm2_decoder::Lfm2Config;

/// Facts of a family that are known before its code is loaded.
struct Row {
    model_types: &'static [ModelType],
    names: &'static [Name],
}

/// Code of a family, and what it needs to read files.
pub(super) struct Code {
    facts: &'static Facts,
    read: fn(&str, &Section) -> Result<ModelConfig, ModelError>,
}

/// Makes the tables of a group of families, in the order in which messages list their types: the facts of each
/// that are known before its code is loaded, and its code. Whatever refers to the second table contains the code of the whole group.
macro_rules! families {
    ($rows:ident, $codes:ident: $($config:ty),+ $(,)?) => {
        static $rows: &[Row] = &[$({
            const ENTRIES: &[Entry] = <$config as Registered>::FACTS.catalogue;
            const NAMES: [Name; ENTRIES.len()] = names(ENTRIES);
            Row {
                model_types: <$config as Registered>::FACTS.model_types,
                names: &NAMES,
            }
        }),+];

        pub(super) static $codes: &[Code] = &[$(Code {
            facts: <$config as Registered>::FACTS,
            read: |model_type, s| <$config as Registered>::read_config(model_type, s).map(ModelConfig::new),
        }),+];
    };
}

// LLaVA and decoders like Llama's, of which most are read with a group (`decoders::group`).
families! {
    FIRST_ROWS, FIRST:
    llava::LlavaConfig,
    DecoderConfig,
}

// Other models of images and videos.
families! {
    IMAGE_ROWS, IMAGES:
    vipllava::VipLlavaConfig,
    video_llava::VideoLlavaConfig,
    llava_next::LlavaNextConfig,
    granite4_vision::Granite4VisionConfig,
    qwen2_vl::Qwen2VlConfig,
    qwen2_5_vl::Qwen25VlConfig,
    qwen3_vl::Qwen3VlConfig,
    qwen3_5::Qwen35Config,
    qwen2_5_omni::Qwen25OmniConfig,
    qwen3_omni_moe::Qwen3OmniConfig,
    glm4v::Glm4vConfig,
    ernie4_5_vl::Ernie45VlConfig,
    exaone4_5::Exaone45Config,
    cosmos3_edge::Cosmos3EdgeConfig,
    paddleocr_vl::PaddleOcrVlConfig,
    video_llama_3::VideoLlama3Config,
    kimi_k25::KimiK25Config,
    muse_glimmer::MuseGlimmerConfig,
    minicpmv4_6::MiniCpmV46Config,
    minimax_m3_vl::MiniMaxM3VlConfig,
    internvl::InternVlConfig,
    aya_vision::AyaVisionConfig,
    aria::AriaConfig,
    lfm2_vl::Lfm2VlConfig,
    ovis2::Ovis2Config,
    ovis2_5::Ovis25Config,
    llama4::Llama4Config,
    deepseek_vl::DeepseekVlConfig,
    deepseek_vl_hybrid::DeepseekVlHybridConfig,
    deepseek_vl_v2::DeepseekVlV2Config,
    janus::JanusConfig,
    got_ocr2::GotOcr2Config,
    mistral3::Mistral3Config,
    paligemma::PaliGemmaConfig,
    gemma3::Gemma3Config,
    gemma4::Gemma4Config,
    idefics::IdeficsConfig,
    idefics2::Idefics2Config,
    idefics3::Idefics3Config,
    mllama::MllamaConfig,
    fuyu::FuyuConfig,
    kosmos2::Kosmos2Config,
    blip::BlipConfig,
    blip2::Blip2Config,
    instructblip::InstructBlipConfig,
    git::GitConfig,
    pp_formulanet::PpFormulaNetConfig,
    pix2struct::Pix2StructConfig,
    clip::ClipConfig,
    siglip::SiglipConfig,
    vit::VitConfig,
    videomae::VideoMaeConfig,
    video_resnet::VideoResNetConfig,
}

// Other language models.
families! {
    TEXT_ROWS, TEXT:
    DeltaDecoderConfig,
    Lfm2Config,
    mamba::MambaConfig,
    mamba_hybrid::MambaHybridConfig,
    olmo_hybrid::OlmoHybridConfig,
    kimi_linear::KimiLinearConfig,
    gemma4_text::Gemma4TextConfig,
    gemma3n_text::Gemma3nTextConfig,
    llama4::Llama4TextConfig,
    mllama::MllamaTextConfig,
    gpt_neox::GptNeoxConfig,
    gpt_neox_japanese::GptNeoxJapaneseConfig,
    stablelm::StableLmConfig,
    persimmon::PersimmonConfig,
    phi::PhiConfig,
    gpt::GptConfig,
    gpt2::Gpt2Config,
    openai_gpt::OpenAiGptConfig,
    ctrl::CtrlConfig,
    xlm::XlmConfig,
    opt::OptConfig,
    bloom::BloomConfig,
    mpt::MptConfig,
    falcon::FalconConfig,
    biogpt::BioGptConfig,
    xglm::XglmConfig,
    modernbert_decoder::ModernBertDecoderConfig,
    cpmant::CpmAntConfig,
    minimax::MiniMaxConfig,
    hrm_text::HrmTextConfig,
    moshi::MoshiConfig,
    phi4_multimodal::Phi4MultimodalConfig,
    zamba2::Zamba2Config,
    zamba::ZambaConfig,
    jetmoe::JetMoeConfig,
    recurrent_gemma::RecurrentGemmaConfig,
    prophetnet::ProphetNetConfig,
    bart::BartConfig,
    bert::BertConfig,
}

/// Groups of families, with what is known of each family; `None` is the group that is always there.
static GROUPS: [(Option<LazyGroup>, &[Row]); 3] = [
    (None, FIRST_ROWS),
    (Some(LazyGroup::Images), IMAGE_ROWS),
    (Some(LazyGroup::Text), TEXT_ROWS),
];

/// The typed configuration of a model.
#[derive(Clone)]
pub struct ModelConfig(Arc<dyn Family>);

impl fmt::Debug for ModelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelConfig").finish_non_exhaustive()
    }
}

impl ModelConfig {
    fn new(config: impl Family) -> Self {
        Self(Arc::new(config))
    }

    /// Makes that of a decoder.
    pub(crate) fn of_decoder(config: DecoderConfig) -> Self {
        Self::new(config)
    }

    /// Returns the configuration as its family's answers to the engine.
    pub(crate) fn family(&self) -> &dyn Family {
        &*self.0
    }

    /// Returns the configuration if it is of this type.
    pub fn downcast<C: Any>(&self) -> Option<&C> {
        (self.family() as &dyn Any).downcast_ref()
    }
}

impl PartialEq for ModelConfig {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_equal(other.family())
    }
}

/// A `model_type` and the family that reads it.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    pub model_type: &'static ModelType,
    /// Group whose code the family needs; `None` if it is always there.
    pub group: Option<LazyGroup>,
    /// Index in the group.
    index: usize,
}

/// Families, each with its group and its index there.
fn rows() -> impl Iterator<Item = (Option<LazyGroup>, usize, &'static Row)> {
    GROUPS
        .iter()
        .flat_map(|(group, rows)| rows.iter().enumerate().map(|(index, row)| (*group, index, row)))
}

/// Every `model_type` that is read, in the order in which messages list them.
pub(crate) fn model_types() -> impl Iterator<Item = &'static ModelType> {
    rows().flat_map(|(_, _, row)| row.model_types)
}

/// Names of models, family by family, each with the group of families that its file needs.
pub(crate) fn model_names() -> impl Iterator<Item = (Option<LazyGroup>, Name)> {
    let of_families = rows().flat_map(|(group, _, row)| row.names.iter().map(move |name| (group, *name)));
    of_families.chain(decoders::model_names())
}

/// Entries of a group of families whose code is there; none otherwise.
pub(crate) fn entries(group: Option<LazyGroup>) -> impl Iterator<Item = &'static Entry> {
    let of_families = codes(group)
        .unwrap_or_default()
        .iter()
        .flat_map(|code| code.facts.catalogue);
    let has_decoders = matches!(group, None | Some(LazyGroup::Blocks));
    let decoders = has_decoders.then(decoders::entries);
    of_families.chain(decoders.into_iter().flatten())
}

/// Classes of the language model alone of a model of images, and the types that read the `text_config` in its file.
const TEXT_CLASSES: [(&str, &str); 4] = [
    ("Llama4ForCausalLM", "llama4_text"),
    ("MllamaForCausalLM", "mllama_text_model"),
    ("Qwen3_5ForCausalLM", "qwen3_5_text"),
    ("Qwen3_5MoeForCausalLM", "qwen3_5_moe_text"),
];

/// Type that reads the `text_config` in a file whose `architectures` name a language model alone; `None` for any other.
pub(crate) fn known_text(object: &Map<String, Value>) -> Option<Known> {
    object.get("text_config")?;
    let classes = object.get("architectures")?.as_array()?;
    let (_, model_type) = TEXT_CLASSES
        .iter()
        .find(|(class, _)| classes.iter().any(|given| given == class))?;
    known(model_type)
}

/// Finds the family that reads a `model_type`.
pub(crate) fn known(model_type: &str) -> Option<Known> {
    rows().find_map(|(group, index, row)| {
        let model_type = row.model_types.iter().find(|known| known.name == model_type)?;
        Some(Known {
            model_type,
            group,
            index,
        })
    })
}

/// Code of a group's families, if it is there.
fn codes(group: Option<LazyGroup>) -> Option<&'static [Code]> {
    match group {
        None => Some(FIRST),
        Some(group) => group.codes(),
    }
}

impl Known {
    /// Facts of the family; `None` if its code is not there.
    pub fn facts(self) -> Option<&'static Facts> {
        self.code().map(|code| code.facts)
    }

    /// Reads a configuration of this type.
    pub fn read(self, s: &Section) -> Result<ModelConfig, ModelError> {
        let name = self.model_type.name;
        match self.code() {
            Some(code) => (code.read)(name, s),
            None => Err(ModelError::not_loaded(name)),
        }
    }

    fn code(self) -> Option<&'static Code> {
        codes(self.group)?.get(self.index)
    }
}
