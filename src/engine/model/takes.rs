//! Parts of a setup that apply to a model.

use super::{Model, ModelConfig};

/// Parts of a setup that apply to a model; a frontend shows no others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Takes {
    /// True if the model has text: `seq` counts, and the language model can take adapters.
    pub text: bool,
    /// True if it takes any number of images per sample.
    pub images: bool,
    /// True if it takes another image size than the configuration's.
    pub image: bool,
    /// True if it takes a patch grid for each image.
    pub grid: bool,
    /// True if it takes frames of a video.
    pub frames: bool,
    /// True if it has a vision tower and a connector, which can be frozen or trained alone.
    pub parts: bool,
}

impl Takes {
    /// Only samples: pure vision models of a fixed size.
    const SAMPLES: Self = Self {
        text: false,
        images: false,
        image: false,
        grid: false,
        frames: false,
        parts: false,
    };

    /// Decoders.
    const TEXT: Self = Self {
        text: true,
        ..Self::SAMPLES
    };

    /// Vision-language models with one image per sample.
    const ONE_IMAGE: Self = Self {
        parts: true,
        ..Self::TEXT
    };

    /// Vision-language models with any number of images per sample.
    const IMAGES: Self = Self {
        images: true,
        ..Self::ONE_IMAGE
    };
}

impl Model {
    /// Parts of a setup that apply to this model.
    pub const fn takes(&self) -> Takes {
        use ModelConfig as M;
        match &self.config {
            M::Gpt2(_) | M::Decoder(_) | M::Opt(_) | M::Phi(_) => Takes::TEXT,
            M::Llava(_) | M::LlavaNext(_) => Takes {
                image: true,
                ..Takes::IMAGES
            },
            M::InternVl(_) | M::Idefics3(_) | M::Gemma3(_) => Takes::IMAGES,
            M::Qwen2Vl(_) | M::Qwen25Vl(_) | M::Qwen3Vl(_) => Takes {
                grid: true,
                ..Takes::IMAGES
            },
            M::PaliGemma(_) => Takes {
                image: true,
                ..Takes::ONE_IMAGE
            },
            M::Mllama(_) | M::Blip2(_) => Takes::ONE_IMAGE,
            M::Clip(_) | M::Siglip(_) => Takes::SAMPLES,
            M::Vit(_) => Takes {
                image: true,
                ..Takes::SAMPLES
            },
            M::VideoMae(_) => Takes {
                image: true,
                frames: true,
                ..Takes::SAMPLES
            },
        }
    }
}
