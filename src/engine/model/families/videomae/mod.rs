//! VideoMAE for video classification.

mod config;
mod forward;

pub use config::VideoMaeConfig;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Size, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, Override, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::AdapterMaps;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "videomae",
        classes: &[
            "VideoMAEForVideoClassification",
            "VideoMAEModel",
            "VideoMAEForPreTraining",
        ],
    }],
    catalogue: catalogue![
        "videomae-base" = "MCG-NJU/videomae-base-finetuned-kinetics",
        "videomae-large" = "MCG-NJU/videomae-large-finetuned-kinetics",
        "MCG-NJU/videomae-base-finetuned-kinetics",
        "MCG-NJU/videomae-large-finetuned-kinetics",
    ],
    overrides: &[
        Override {
            setting: "image",
            section: None,
            key: "image_size",
        },
        Override {
            setting: "frames",
            section: None,
            key: "num_frames",
        },
    ],
    use_cache: UseCache::OfText,
};

impl Registered for VideoMaeConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for VideoMaeConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::VideoMae::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes {
            image_size: true,
            frames: true,
            ..Takes::SAMPLES
        }
    }

    fn positions(&self) -> Positions {
        Positions::Fixed
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.shape.heads, self.shape.hidden)
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, _: &Setup) -> u64 {
        0
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            frames: Some(Size {
                own: self.frames,
                unit: self.tubelet,
            }),
            ..Sizes::of_image(self.grid.image, self.grid.patch)
        }
    }

    fn support(&self) -> Support<'_> {
        Support {
            main_inputs: MainInputs {
                model_takes_ids: false,
                tower_takes_ids: false,
            },
            adapters: AdapterMaps::None,
            ..Support::USUAL
        }
    }
}
