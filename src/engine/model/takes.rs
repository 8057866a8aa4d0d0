//! Which settings of its inputs and its parts a model takes.

use serde::{Deserialize, Serialize};

/// Settings that a model takes beyond those of every model, such as `batch`; a frontend shows no others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Takes {
    /// True if the model reads a sequence of tokens whose length is `seq`; its language model can take adapters.
    pub text: bool,
    /// True if a sample may have any number of images (`images`). Models with one image, or none, have false.
    pub image_count: bool,
    /// True if steps of samples without images are simulated (`images` 0).
    pub text_alone: bool,
    /// True if the side of a square image (`image`) may differ from the configuration's.
    pub image_size: bool,
    /// True if images are given by their grid of patches (`grid`), as in Qwen's vision-language models.
    pub grid: bool,
    /// True if it takes a video, of any number of frames (`frames`).
    pub frames: bool,
    /// True if it has a vision tower and a connector, which can be frozen or trained alone. That is also what tells
    /// vision-language models from others.
    pub parts: bool,
    /// True if its blocks can be checkpointed (`ckpt`): most of transformers' models can, those of other libraries cannot.
    pub checkpointing: bool,
}

impl Takes {
    /// None of these: models whose inputs have fixed sizes, so that only the number of samples varies.
    pub(crate) const SAMPLES: Self = Self {
        text: false,
        image_count: false,
        text_alone: false,
        image_size: false,
        grid: false,
        frames: false,
        parts: false,
        checkpointing: true,
    };

    /// Language models without images.
    pub(crate) const TEXT: Self = Self {
        text: true,
        ..Self::SAMPLES
    };

    /// Vision-language models with exactly one image per sample, which `images` therefore does not count.
    pub(crate) const ONE_IMAGE: Self = Self {
        parts: true,
        ..Self::TEXT
    };

    /// Vision-language models with any number of images per sample.
    pub(crate) const IMAGES: Self = Self {
        image_count: true,
        ..Self::ONE_IMAGE
    };
}
