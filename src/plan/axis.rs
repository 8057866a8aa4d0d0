//! Numeric settings that a sweep can vary, and their values.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use vramscope_engine::model::Size;
use vramscope_engine::order::sort_by_key;
use vramscope_engine::setup::Setting;
use vramscope_engine::{Model, Setup};

/// A numeric setting that a sweep varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Axis(Setting);

impl Axis {
    /// Micro-batch.
    pub const BATCH: Self = Self(Setting::Batch);
    /// Positions per sample.
    pub const SEQ: Self = Self(Setting::Seq);
    /// Side length of each image, in pixels.
    pub const IMAGE: Self = Self(Setting::Image);
    /// Images per sample.
    pub const IMAGES: Self = Self(Setting::Images);
    /// Frames per video.
    pub const FRAMES: Self = Self(Setting::Frames);

    /// All settings whose declaration has a sweep.
    pub fn all() -> impl Iterator<Item = Self> {
        let all = Setting::ALL.iter().copied();
        all.filter(|setting| setting.declaration().sweep.is_some()).map(Self)
    }

    /// Keys of all these settings.
    pub fn names() -> &'static [&'static str] {
        static NAMES: OnceLock<Vec<&str>> = OnceLock::new();
        NAMES.get_or_init(|| Self::all().map(Self::name).collect())
    }

    /// Setting that is varied.
    pub const fn setting(self) -> Setting {
        self.0
    }

    /// Key of the setting.
    pub const fn name(self) -> &'static str {
        self.0.key()
    }

    /// Returns true if the setting applies to a model.
    pub fn is_of(self, model: &Model) -> bool {
        let takes = model.takes();
        match self.0 {
            // A patch grid is set by the side of a square image.
            Setting::Image => takes.image_size || takes.grid,
            setting => setting.declaration().needs.met_by(takes),
        }
    }

    /// Returns true if the setting applies to a model with this setup.
    pub fn applies(self, model: &Model, setup: &Setup) -> bool {
        self.is_of(model) && self.0.declaration().depends.met_by(setup)
    }

    /// The value in a setup, or the model's default if the setup has none.
    pub fn value(self, model: &Model, setup: &Setup) -> u64 {
        match self.0 {
            Setting::Image => setup.image.unwrap_or_else(|| own(model.sizes().image, 224)),
            Setting::Images => model.prepared(setup).images,
            Setting::Frames => setup.frames.unwrap_or_else(|| own(model.sizes().frames, 1)),
            setting => setting.of(&setup.batched()).count().unwrap_or(0),
        }
    }

    /// A copy of the setup with this value. It replaces lists of different lengths by one length, and a grid or list of
    /// image sizes by a square image.
    pub fn set(self, setup: &Setup, value: u64) -> Setup {
        let mut setup = setup.batched();
        match self.0 {
            Setting::Batch | Setting::Seq => setup.lengths.clear(),
            Setting::Image => {
                setup.image_sizes.clear();
                setup.grid = None;
            }
            Setting::Images => setup.image_sizes.clear(),
            _ => {}
        }
        if let Some(change) = self.0.count(value) {
            change.put(&mut setup);
        }
        setup
    }

    /// Step between valid values: whole patches that merge into whole tokens, or whole tubelets.
    pub fn unit(self, model: &Model) -> u64 {
        let of = |size: Option<Size>| size.map_or(1, |size| size.unit);
        match self.0 {
            Setting::Seq => 32,
            Setting::Rank => 8,
            Setting::Frames => of(model.sizes().frames),
            Setting::Image => of(model.sizes().image),
            _ => 1,
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
    pub fn most(self) -> u64 {
        self.0.declaration().sweep.unwrap_or(0)
    }
}

/// Size that a model has without a choice, or `usual` if it has none to choose.
fn own(size: Option<Size>, usual: u64) -> u64 {
    size.map_or(usual, |size| size.own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_engine::setup::Freeze;

    fn model(name: &str) -> Model {
        Model::from_catalogue(name).expect("it is in the catalogue")
    }

    #[test]
    fn values_are_whole_patches_and_tubelets() {
        let llava = model("llava-1.5-7b");
        assert_eq!(Axis::IMAGE.unit(&llava), 14);
        assert!(Axis::IMAGE.values(&llava, 336, 700).iter().all(|v| v % 14 == 0));
        assert_eq!(Axis::IMAGE.unit(&model("qwen2-vl-2b")), 28);
        assert_eq!(
            Axis::FRAMES.values(&model("videomae-base"), 16, 32),
            [2, 4, 6, 8, 12, 16, 24, 32]
        );
        assert_eq!(Axis::BATCH.values(&llava, 5, 8), [1, 2, 3, 4, 5, 6, 8]);
    }

    #[test]
    fn only_what_means_something_is_varied() {
        let axes = |name| {
            let model = model(name);
            let setup = Setup::default();
            Axis::all()
                .filter(|axis| axis.applies(&model, &setup))
                .collect::<Vec<_>>()
        };
        assert_eq!(axes("gpt2"), [Axis::BATCH, Axis::SEQ]);
        assert_eq!(axes("vit-large"), [Axis::BATCH, Axis::IMAGE]);
        assert_eq!(axes("videomae-base"), [Axis::BATCH, Axis::IMAGE, Axis::FRAMES]);
        assert_eq!(axes("qwen2-vl-2b"), [Axis::BATCH, Axis::SEQ, Axis::IMAGES, Axis::IMAGE]);
    }

    #[test]
    fn the_rank_of_adapters_is_varied_where_there_are_adapters() {
        let adapters = Setup {
            freeze: Freeze::Lora,
            ..Setup::default()
        };
        let applies =
            |setup: &Setup| Axis::all().any(|axis| axis.name() == "rank" && axis.applies(&model("gpt2"), setup));
        assert!(applies(&adapters) && !applies(&Setup::default()));
    }

    #[test]
    fn a_value_that_is_set_is_read_back() {
        let videomae = model("videomae-base");
        for axis in Axis::all() {
            let setup = axis.set(&Setup::default(), 48);
            assert_eq!(axis.value(&videomae, &setup), 48);
        }
    }
}
