//! InternVL 2.5 and 3, and Qianfan-OCR.

mod config;
mod forward;
mod vision;

pub use config::{InternVlConfig, InternVlVisionConfig};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support, TensorPlan};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::Liger;
use crate::model::parts::tiles::tiles_of;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[
        ModelType {
            name: "internvl",
            classes: &["InternVLForConditionalGeneration"],
        },
        ModelType {
            name: "internvl_chat",
            classes: &["InternVLChatModel"],
        },
        ModelType {
            name: "qianfan_ocr",
            classes: &["QianfanOCRForConditionalGeneration"],
        },
    ],
    catalogue: catalogue![
        "internvl3-1b",
        "internvl3-2b",
        "OpenGVLab/InternVL3-1B-hf",
        "OpenGVLab/InternVL3-2B-hf",
        "OpenGVLab/InternVL3-8B-hf",
        "OpenGVLab/InternVL3-14B-hf",
        "OpenGVLab/InternVL3_5-1B-HF",
        "OpenGVLab/InternVL3_5-2B-HF",
        "OpenGVLab/InternVL3_5-4B-HF",
        "OpenGVLab/InternVL3_5-8B-HF",
        "OpenGVLab/InternVL3_5-14B-HF",
        "OpenGVLab/InternVL3_5-30B-A3B-HF",
    ],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for InternVlConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        match model_type {
            "internvl_chat" => Self::read_chat(s),
            "qianfan_ocr" => Self::read_qianfan(s),
            _ => Self::read(s),
        }
    }
}

impl Family for InternVlConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::InternVl::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        match self.text.is_gemma() {
            true => Fidelity::ReadOnly,
            false => Fidelity::Exact,
        }
    }

    fn takes(&self) -> Takes {
        Takes::IMAGES
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.text.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_decoder(&self.text)
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.iter().map(|&size| tiles_of(size, self.vision.grid.image)).sum()
    }

    fn image_tokens(&self, setup: &Setup) -> u64 {
        setup.images * self.tile_tokens()
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::FIXED
    }

    fn text_type(&self) -> &'static str {
        self.text.family.name()
    }

    fn support(&self) -> Support<'_> {
        Support {
            liger: match self.is_qianfan {
                true => Liger::Unknown,
                false => Liger::Replaces,
            },
            tensor_parallel: match self.is_qianfan {
                true => None,
                false => TensorPlan::of(&self.text, false),
            },
            ..Support::USUAL
        }
    }
}
