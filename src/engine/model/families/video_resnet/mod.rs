//! torchvision's ResNets for video classification.

mod config;
mod forward;

pub use config::VideoResNetConfig;

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
    model_types: &[ModelType::new("torchvision_video_resnet", &["VideoResNet"])],
    catalogue: catalogue!["r3d_18", "mc3_18", "r2plus1d_18"],
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

impl Registered for VideoResNetConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for VideoResNetConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::VideoResNet::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::WithoutPartialSums
    }

    fn takes(&self) -> Takes {
        Takes {
            image_size: true,
            frames: true,
            checkpointing: false,
            ..Takes::SAMPLES
        }
    }

    fn positions(&self) -> Positions {
        Positions::Fixed
    }

    fn heads(&self) -> Heads {
        // There is no attention whose heads could limit anything.
        Heads::of_all(1, 64)
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
                unit: 1,
            }),
            ..Sizes::of_image(self.image, 1)
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
