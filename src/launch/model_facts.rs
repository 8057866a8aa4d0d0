//! What tools make settings of that no file gives: facts of the model.

use vramscope_engine::simulate::{In4Bits, parameters_in_4_bits};
use vramscope_engine::{Model, Setup};

/// What tools make settings of that no file gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelFacts {
    /// False for a model of text alone, for which the tools pass over what is said of the parts of a vision-language model.
    pub takes_images: bool,
    /// Width of which transformers makes DeepSpeed's sizes that are "auto".
    pub hidden_size: Option<u64>,
    /// Pixels a side of a token of an image, of a Qwen-VL model.
    pub token_side: Option<u64>,
    /// Positions that it was made for, beyond which tools cut samples where nothing else limits them.
    pub positions: Option<u64>,
    /// What its images take; `None` if that is not known.
    pub images: Option<ImageFacts>,
    /// It is the thinker of a model that tools load with its talker.
    pub is_thinker: bool,
    /// Its processor cuts images into tiles where it is asked to (`crop_to_patches`).
    pub cuts_where_asked: bool,
    /// Its parameters, as bitsandbytes keeps them.
    pub parameters: Option<In4Bits>,
    /// Rows of its table of tokens.
    pub vocabulary: Option<u64>,
    /// Elements of keys and values of a position in all layers.
    pub cached: Option<u64>,
    /// Liger's fused loss takes the place of its own, and is simulated.
    pub has_fused_loss: bool,
    /// What Liger's other kernels do with it.
    pub liger: LigerKnowledge,
    /// `model_type` of its configuration; empty if that is not known.
    pub model_type: &'static str,
    /// Parameters of another model that the run names beside it ([`crate::Launch::other_model`]).
    pub beside: Option<In4Bits>,
    /// FlashAttention runs it, and is not simulated for it.
    pub lacks_flash_attention: bool,
    /// Its activations leave the range of fp16.
    pub overflows_fp16: bool,
    /// Its checkpoints hold fp32.
    pub is_stored_in_fp32: bool,
}

/// What Liger makes of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LigerKnowledge {
    /// It replaces functions and modules, which is simulated.
    Simulated,
    /// It replaces functions and modules, which is not simulated.
    NotSimulated,
    /// It knows no model of this type, and leaves it as it is.
    None,
}

impl LigerKnowledge {
    fn of(model: &Model) -> Self {
        match (model.is_known_to_liger(), model.liger_patches(&Setup::default())) {
            (_, Some(_)) => Self::Simulated,
            (true, None) => Self::NotSimulated,
            (false, None) => Self::None,
        }
    }
}

/// Families whose checkpoints are older than files that name a type, and hold fp32 (headers of the weights of
/// openai-community/gpt2, google-bert/bert-base-uncased, google/vit-base-patch16-224 and openai/clip-vit-large-patch14).
const STORED_IN_FP32: [&str; 4] = ["gpt2", "bert", "vit", "clip"];

/// Families whose activations unsloth keeps in fp32 on cards that have fp16 alone (`FORCE_FLOAT32` in
/// `unsloth_zoo/model_lists.py`, 2026).
const OVERFLOWING: [&str; 9] = [
    "gemma3",
    "gemma3_text",
    "gemma3n",
    "gemma4",
    "gemma4_text",
    "glm4_moe",
    "gpt_oss",
    "qwen3_5",
    "qwen3_moe",
];

/// What the images of a model take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageFacts {
    /// Positions of an image, or of a tile of one, of the model's own size.
    pub tokens: u64,
    /// Pixels a side of an image of the model's own size, and the step between valid sides; `None` if it has one size.
    pub side: Option<[u64; 2]>,
    /// What its processor makes of images of any size is known.
    pub takes_sizes: bool,
    /// A sample may have several.
    pub takes_several: bool,
}

impl ImageFacts {
    fn of(model: &Model) -> Option<Self> {
        let one = Setup {
            images: 1,
            ..Setup::default()
        };
        let takes = model.takes();
        takes.parts.then(|| Self {
            tokens: model.image_tokens(&one),
            side: model.sizes().image.map(|size| [size.own, size.unit]),
            takes_sizes: model.knows_image_sizes(),
            takes_several: takes.image_count,
        })
    }
}

impl ModelFacts {
    /// Facts of a model that is not known: it may take images.
    pub const UNKNOWN: Self = Self {
        takes_images: true,
        hidden_size: None,
        token_side: None,
        positions: None,
        images: None,
        is_thinker: false,
        cuts_where_asked: false,
        parameters: None,
        vocabulary: None,
        cached: None,
        has_fused_loss: false,
        liger: LigerKnowledge::Simulated,
        model_type: "",
        beside: None,
        lacks_flash_attention: false,
        overflows_fp16: false,
        is_stored_in_fp32: false,
    };

    /// Facts of a model.
    pub fn of(model: &Model) -> Self {
        Self {
            takes_images: model.takes().parts,
            hidden_size: model.hidden_size,
            token_side: model.sizes().image.filter(|_| model.takes().grid).map(|size| size.unit),
            positions: model.rotary_positions().or(model.learned_positions()),
            images: ImageFacts::of(model),
            is_thinker: model.model_type.ends_with("_thinker"),
            cuts_where_asked: model.model_type == "internvl",
            parameters: model.takes().text.then(|| parameters_in_4_bits(model)),
            vocabulary: model.vocabulary,
            cached: model.cached,
            has_fused_loss: model.has_fused_loss(),
            liger: LigerKnowledge::of(model),
            model_type: model.model_type,
            beside: None,
            lacks_flash_attention: model.lacks_flash_attention(),
            overflows_fp16: OVERFLOWING.contains(&model.model_type),
            is_stored_in_fp32: STORED_IN_FP32.contains(&model.model_type),
        }
    }
}
