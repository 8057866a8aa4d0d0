//! Parts of a setup that apply to a model.

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
    pub(crate) const SAMPLES: Self = Self {
        text: false,
        images: false,
        image: false,
        grid: false,
        frames: false,
        parts: false,
    };

    /// Decoders.
    pub(crate) const TEXT: Self = Self {
        text: true,
        ..Self::SAMPLES
    };

    /// Vision-language models with one image per sample.
    pub(crate) const ONE_IMAGE: Self = Self {
        parts: true,
        ..Self::TEXT
    };

    /// Vision-language models with any number of images per sample.
    pub(crate) const IMAGES: Self = Self {
        images: true,
        ..Self::ONE_IMAGE
    };
}
