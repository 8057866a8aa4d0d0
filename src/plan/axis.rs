//! Numeric settings that a sweep can vary, and their values.

use serde::{Deserialize, Serialize};

use vramscope_engine::model::ModelConfig;
use vramscope_engine::order::sort_by_key;
use vramscope_engine::{Model, Setup};

/// A numeric setting that a sweep varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// Micro-batch.
    Batch,
    /// Positions per sample.
    Seq,
    /// Side length of each image, in pixels.
    Image,
    /// Images per sample.
    Images,
    /// Frames per video.
    Frames,
}

impl Axis {
    /// All axes, in menu order.
    pub const ALL: [Self; 5] = [Self::Batch, Self::Seq, Self::Image, Self::Images, Self::Frames];

    /// Key of the setting in a setup.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Seq => "seq",
            Self::Image => "image",
            Self::Images => "images",
            Self::Frames => "frames",
        }
    }

    /// Returns true if the setting applies to a model.
    pub const fn is_of(self, model: &Model) -> bool {
        let takes = model.takes();
        match self {
            Self::Batch => true,
            Self::Seq => takes.text,
            Self::Image => takes.image || takes.grid,
            Self::Images => takes.images,
            Self::Frames => takes.frames,
        }
    }

    /// The value in a setup, or the model's default if the setup has none.
    pub fn value(self, model: &Model, setup: &Setup) -> u64 {
        match self {
            Self::Batch => setup.batched().batch,
            Self::Seq => setup.batched().seq,
            Self::Image => setup.image.unwrap_or_else(|| own_image(&model.config)),
            Self::Images => model.prepared(setup).images,
            Self::Frames => setup.frames.unwrap_or_else(|| own_frames(&model.config)),
        }
    }

    /// A copy of the setup with this value. It replaces lists of different lengths by one length, and a grid or list of
    /// image sizes by a square image.
    pub fn set(self, setup: &Setup, value: u64) -> Setup {
        let mut setup = setup.batched();
        match self {
            Self::Batch | Self::Seq => setup.lengths.clear(),
            Self::Image | Self::Images => setup.image_sizes.clear(),
            Self::Frames => {}
        }
        match self {
            Self::Batch => setup.batch = value,
            Self::Seq => setup.seq = value,
            Self::Image => (setup.image, setup.grid) = (Some(value), None),
            Self::Images => setup.images = value,
            Self::Frames => setup.frames = Some(value),
        }
        setup
    }

    /// Step between valid values: whole patches that merge into whole tokens, or whole tubelets.
    pub const fn unit(self, model: &Model) -> u64 {
        use ModelConfig as M;
        match self {
            Self::Batch | Self::Images => 1,
            Self::Seq => 32,
            Self::Frames => match &model.config {
                M::VideoMae(c) => c.tubelet,
                _ => 1,
            },
            Self::Image => match &model.config {
                M::Llava(c) => c.vision.patch,
                M::LlavaNext(c) => c.vision.patch,
                M::PaliGemma(c) => c.vision.grid.patch,
                M::Qwen2Vl(c) => c.vision.patches.patch * c.vision.patches.merge,
                M::Qwen25Vl(c) => c.vision.patches.patch * c.vision.patches.merge,
                M::Qwen3Vl(c) => c.vision.patches.patch * c.vision.patches.merge,
                M::Vit(c) => c.grid.patch,
                M::VideoMae(c) => c.grid.patch,
                _ => 1,
            },
        }
    }

    /// Values from one unit to `most`, two per doubling, including `own`.
    pub fn values(self, model: &Model, own: u64, most: u64) -> Vec<u64> {
        let unit = self.unit(model).max(1);
        let mut values = vec![own.min(most)];
        let mut octave = 1;
        while octave * unit <= most {
            values.extend([octave * unit, (octave * unit).saturating_add(octave * unit / 2)]);
            octave *= 2;
        }
        values.retain(|&v| v > 0 && v <= most && (v % unit == 0 || v == own));
        sort_by_key(&mut values, |v| *v);
        values.dedup();
        values
    }

    /// Largest value to try.
    pub const fn most(self) -> u64 {
        match self {
            Self::Batch => 4096,
            Self::Seq => 1 << 20,
            Self::Image => 4096,
            Self::Images | Self::Frames => 512,
        }
    }
}

const fn own_image(config: &ModelConfig) -> u64 {
    use ModelConfig as M;
    match config {
        M::Llava(c) => c.vision.image,
        M::LlavaNext(c) => c.vision.image,
        M::PaliGemma(c) => c.vision.grid.image,
        M::Vit(c) => c.grid.image,
        M::VideoMae(c) => c.grid.image,
        // 24 × 24 patches, the default of a setup without an image.
        M::Qwen2Vl(c) => 24 * c.vision.patches.patch,
        M::Qwen25Vl(c) => 24 * c.vision.patches.patch,
        M::Qwen3Vl(c) => 24 * c.vision.patches.patch,
        _ => 224,
    }
}

const fn own_frames(config: &ModelConfig) -> u64 {
    match config {
        ModelConfig::VideoMae(c) => c.frames,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str) -> Model {
        Model::from_catalogue(name).expect("it is in the catalogue")
    }

    #[test]
    fn values_are_whole_patches_and_tubelets() {
        let llava = model("llava-1.5-7b");
        assert_eq!(Axis::Image.unit(&llava), 14);
        assert!(Axis::Image.values(&llava, 336, 700).iter().all(|v| v % 14 == 0));
        assert_eq!(Axis::Image.unit(&model("qwen2-vl-2b")), 28);
        assert_eq!(
            Axis::Frames.values(&model("videomae-base"), 16, 32),
            [2, 4, 6, 8, 12, 16, 24, 32]
        );
        assert_eq!(Axis::Batch.values(&llava, 5, 8), [1, 2, 3, 4, 5, 6, 8]);
    }

    #[test]
    fn only_what_means_something_is_varied() {
        let axes = |name| {
            let model = model(name);
            Axis::ALL
                .into_iter()
                .filter(|axis| axis.is_of(&model))
                .collect::<Vec<_>>()
        };
        assert_eq!(axes("gpt2"), [Axis::Batch, Axis::Seq]);
        assert_eq!(axes("vit-large"), [Axis::Batch, Axis::Image]);
        assert_eq!(axes("videomae-base"), [Axis::Batch, Axis::Image, Axis::Frames]);
        assert_eq!(axes("qwen2-vl-2b"), [Axis::Batch, Axis::Seq, Axis::Image, Axis::Images]);
    }

    #[test]
    fn a_value_that_is_set_is_read_back() {
        let videomae = model("videomae-base");
        for axis in Axis::ALL {
            let setup = axis.set(&Setup::default(), 48);
            assert_eq!(axis.value(&videomae, &setup), 48);
        }
    }
}
