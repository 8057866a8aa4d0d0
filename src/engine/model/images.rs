//! Images of a sample: what a model's processor makes of them, and the positions that they take.

use super::Model;
use super::answers::Sizes;
use crate::Setup;

impl Model {
    /// Returns the setup as the tower and the language model see it: samples batched, and `images` set to the number of
    /// inputs that the processor makes of images with given sizes (for InternVL and Idefics3, tiles).
    #[must_use]
    pub fn prepared(&self, setup: &Setup) -> Setup {
        let mut setup = setup.batched();
        let inputs = self.inputs_of_samples(&setup);
        setup.images = inputs.into_iter().max().unwrap_or_default();
        setup
    }

    /// Inputs of the vision tower of each sample that differs from the others, of one for all that do not.
    pub(crate) fn inputs_of_samples(&self, setup: &Setup) -> Vec<u64> {
        let inputs = |sample: &Setup| match sample.image_sizes.is_empty() {
            true => sample.images,
            false => self.config.family().inputs(&sample.image_sizes),
        };
        setup.samples_with_images().iter().map(inputs).collect()
    }

    /// Positions of a sample's sequence that its images take, of the sample with most; 0 for text models and pure vision
    /// models.
    pub fn image_tokens(&self, setup: &Setup) -> u64 {
        self.image_tokens_of_samples(setup)
            .into_iter()
            .max()
            .unwrap_or_default()
    }

    /// Image tokens of each sample where samples differ; of one where all are alike.
    pub(crate) fn image_tokens_of_samples(&self, setup: &Setup) -> Vec<u64> {
        let samples = setup.samples_with_images();
        let tokens = samples
            .iter()
            .map(|sample| self.config.family().image_tokens(&self.prepared(sample)));
        tokens.collect()
    }

    /// Returns true if what the processor makes of images of any sizes (`image_sizes`) is known.
    pub fn knows_image_sizes(&self) -> bool {
        self.config.family().knows_image_sizes()
    }

    /// Sizes of images and videos that can be chosen.
    pub fn sizes(&self) -> Sizes {
        self.config.family().sizes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(model: &str, sizes: &[[u64; 2]]) -> u64 {
        let setup = Setup {
            image_sizes: sizes.to_vec(),
            ..Setup::default()
        };
        Model::from_catalogue(model).unwrap().prepared(&setup).images
    }

    /// Tiles of 448 pixels a side, at most 12, plus the downscaled whole image.
    #[test]
    fn internvl_cuts_an_image_into_tiles() {
        assert_eq!(inputs("internvl3-1b", &[[448, 448]]), 1);
        assert_eq!(inputs("internvl3-1b", &[[448, 896]]), 3);
        assert_eq!(inputs("internvl3-1b", &[[2000, 2000]]), 10);
        assert_eq!(inputs("internvl3-1b", &[[480, 640], [448, 448]]), 13 + 1);
    }

    /// The longest side is four tiles of 512 pixels; the downscaled whole image is one more.
    #[test]
    fn smolvlm_cuts_an_image_into_tiles() {
        assert_eq!(inputs("smolvlm-256m", &[[300, 300]]), 17);
        assert_eq!(inputs("smolvlm-256m", &[[480, 640]]), 13);
        assert_eq!(inputs("smolvlm-256m", &[[640, 100], [100, 100]]), 5 + 17);
        assert_eq!(inputs("llava-1.5-7b", &[[640, 100], [100, 100]]), 2);
    }
}
