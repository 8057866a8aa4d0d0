use super::limits;
use super::section::Section;
use crate::model::ModelError;
use crate::setup::Setup;

/// What the vision towers of Qwen2-VL, Qwen2.5-VL and Qwen3-VL share: patches of several frames,
/// rotary positions, and a merger that joins neighbouring patches into one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QwenPatches {
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Colour channels.
    pub channels: u64,
    /// Pixels a side of a patch.
    pub patch: u64,
    /// Frames of a patch.
    pub temporal_patch: u64,
    /// Patches a side that become one token.
    pub merge: u64,
}

impl QwenPatches {
    /// Numbers of one patch, as the processor gives it: channels × frames × patch².
    pub fn patch_elements(&self) -> u64 {
        self.channels * self.temporal_patch * self.patch * self.patch
    }

    /// Patches that become one token.
    pub fn merged(&self) -> u64 {
        self.merge * self.merge
    }

    /// Patches of each image of a setup, rows and columns: as stated, else what the processor makes
    /// of a square image, else 24 × 24.
    ///
    /// Source: `smart_resize` in `transformers/models/qwen2_vl/image_processing_qwen2_vl.py`, which
    /// rounds each side to whole tokens, with the limits of the published checkpoints'
    /// `preprocessor_config.json`: 4 to 16,384 tokens.
    pub fn grid(&self, setup: &Setup) -> [u64; 2] {
        const LEAST: u64 = 2;
        const MOST: u64 = 128;
        let of_pixels = |pixels: u64| {
            let token = self.patch * self.merge;
            let (whole, rest) = (pixels / token, pixels % token);
            // Python rounds a half to the even number
            let rounds_up = 2 * rest > token || (2 * rest == token && whole % 2 == 1);
            let tokens = (whole + u64::from(rounds_up)).clamp(LEAST, MOST);
            [tokens * self.merge; 2]
        };
        setup.grid.or(setup.image.map(of_pixels)).unwrap_or([24, 24])
    }

    /// Positions of each image of a setup: its tokens, and one before and one after them.
    pub fn positions(&self, setup: &Setup) -> u64 {
        let [rows, columns] = self.grid(setup);
        rows * columns / self.merged() + 2
    }

    pub(crate) fn read(s: &Section, layers: u64, patch: u64) -> Result<Self, ModelError> {
        Ok(Self {
            layers: s.size("depth", layers, limits::LAYERS)?,
            heads: s.size_of_either(["num_heads", "num_attention_heads"], 16, limits::HEADS)?,
            channels: s.channels()?,
            patch: s.side("patch_size", patch, limits::PIXELS)?,
            temporal_patch: s.side("temporal_patch_size", 2, limits::COUNT)?,
            merge: s.size("spatial_merge_size", 2, limits::COUNT)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn square_images_become_whole_tokens() {
        let patches = QwenPatches {
            layers: 32,
            heads: 16,
            channels: 3,
            patch: 14,
            temporal_patch: 2,
            merge: 2,
        };
        let grid = |image| {
            patches.grid(&Setup {
                image,
                ..Setup::default()
            })
        };
        // 28 pixels a token: 336 are 12 tokens, 350 are 12.5 and so 12, 378 are 13.5 and so 14
        assert_eq!(grid(Some(336)), [24, 24]);
        assert_eq!(grid(Some(350)), [24, 24]);
        assert_eq!(grid(Some(378)), [28, 28]);
        assert_eq!(grid(Some(1)), [4, 4]);
        assert_eq!(grid(Some(u64::MAX)), [256, 256]);
        assert_eq!(grid(None), [24, 24]);
    }
}
