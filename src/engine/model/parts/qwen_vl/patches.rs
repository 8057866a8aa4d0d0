//! Patches of the vision towers of Qwen-VL and its kin.

use crate::model::ModelError;
use crate::model::answers::Sizes;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::setup::Setup;

/// Sizes that the vision towers of Qwen-VL and its kin share: blocks, patches of one frame or several, and a merger that
/// joins neighbouring patches into one token.
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
    /// Patches along each side of the square that becomes one token.
    pub merge: u64,
    /// The processor's limits and rounding of image sizes.
    pub resize: Resize,
}

/// Limits and rounding of image sizes by a processor (`smart_resize`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resize {
    /// Fewest and most pixels of an image.
    pub pixels: [u64; 2],
    /// Treatment of images that are narrower than a token.
    pub widening: Widening,
}

/// Treatment of images whose height or width is less than that of a token, before their sides are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Widening {
    /// None.
    Never,
    /// Scales it up, first by its height and then by its width, with the other side rounded (PaddleOCR-VL).
    Rounded,
    /// Scales it up by its shorter side, with both cut to whole pixels (GLM-4V).
    Cut,
    /// Scales it up by its shorter side, with the other rounded; one that is more than 200 times as long as wide is
    /// squeezed to that (Ovis2.5).
    Shorter,
    /// Pads it to whole tokens; an image is only scaled down, by its pixels or by a side of this many patches (Kimi-K2.5).
    Padded(u64),
}

impl Resize {
    /// From `least` to `most` tokens of `token` pixels a side.
    pub const fn of_tokens([least, most]: [u64; 2], token: u64, widening: Widening) -> Self {
        Self {
            pixels: [least * token * token, most * token * token],
            widening,
        }
    }

    /// Height and width before they are rounded to tokens of `token` pixels a side.
    fn widened(self, mut size: [u64; 2], token: u64) -> [u64; 2] {
        match self.widening {
            Widening::Never | Widening::Padded(_) => {}
            Widening::Rounded => {
                for (side, other) in [(0, 1), (1, 0)] {
                    if size[side] < token {
                        size[other] = nearest(size[other] * token, size[side]);
                        size[side] = token;
                    }
                }
            }
            Widening::Shorter => {
                let (short, long) = if size[0] < size[1] { (0, 1) } else { (1, 0) };
                if size[short] < token {
                    size[long] = nearest(size[long] * token, size[short]);
                    size[short] = token;
                } else {
                    size[long] = size[long].min(200 * size[short]);
                }
            }
            Widening::Cut => {
                let narrow = size[0].min(size[1]);
                if narrow < token {
                    size = size.map(|side| side * token / narrow);
                }
            }
        }
        size
    }
}

impl QwenPatches {
    /// The limits of the published Qwen-VL checkpoints' `preprocessor_config.json`.
    const TOKENS: [u64; 2] = [4, 16_384];

    /// Patches along each side of an image whose size nobody gives.
    const SIDE: u64 = 24;

    /// Elements of one patch, as the processor makes it: channels × frames × patch².
    pub fn patch_elements(&self) -> u64 {
        self.channels * self.temporal_patch * self.patch * self.patch
    }

    /// Patches that become one token.
    pub fn merged(&self) -> u64 {
        self.merge * self.merge
    }

    /// Rows and columns of patches of each image of a sample, of all samples where they differ: from the sizes given as the processor resizes them, else
    /// the grid given, else from the side of a square image, else 24 × 24.
    pub fn grids(&self, setup: &Setup) -> Vec<[u64; 2]> {
        if !setup.image_sizes.is_empty() {
            return setup.image_sizes.iter().map(|&size| self.grid_of(size)).collect();
        }
        let square = setup.image.map(|side| self.grid_of([side; 2]));
        vec![setup.grid.or(square).unwrap_or([Self::SIDE; 2]); setup.given_images() as usize]
    }

    /// Sizes of images that can be chosen: whole tokens, and [`Self::SIDE`] patches a side where none is.
    pub fn sizes(&self) -> Sizes {
        Sizes::of_image(Self::SIDE * self.patch, self.patch * self.merge)
    }

    /// Rows and columns of patches of an image of `[height, width]` pixels: each side is rounded to whole tokens, and
    /// both are scaled if the image would have too many pixels or too few.
    ///
    /// Source: `smart_resize` in `transformers/models/{qwen2_vl,paddleocr_vl,glm4v}/image_processing_*.py`.
    fn grid_of(&self, size: [u64; 2]) -> [u64; 2] {
        let [least, most] = self.resize.pixels;
        let token = self.patch * self.merge;
        if let Widening::Padded(longest) = self.resize.widening {
            return self.padded_grid(
                size,
                most as f64 / (self.patch * self.patch) as f64,
                longest * self.patch,
            );
        }
        let size = self
            .resize
            .widened(size.map(|side| side.clamp(1, limits::PIXELS)), token);
        let area = (size[0] * size[1]) as f64;
        let rounded = size.map(|side| nearest(side, token));
        let tokens = match rounded[0] * rounded[1] * token * token {
            n if n > most => {
                let beta = (area / most as f64).sqrt();
                size.map(|side| ((side as f64 / beta / token as f64) as u64).max(1))
            }
            n if n < least => {
                let beta = (least as f64 / area).sqrt();
                size.map(|side| (side as f64 * beta / token as f64).ceil() as u64)
            }
            _ => rounded,
        };
        tokens.map(|n| n * self.merge)
    }

    /// Rows and columns of patches of an image that is scaled down to at most `most` patches and to sides of at most
    /// `longest` pixels, then padded (`navit_resize` in `transformers/models/kimi_k25/image_processing_kimi_k25.py`).
    fn padded_grid(&self, size: [u64; 2], most: f64, longest: u64) -> [u64; 2] {
        let size = size.map(|side| side.clamp(1, limits::PIXELS));
        let [rows, columns] = size.map(|side| (side / self.patch).max(1) as f64);
        let by_side = size.map(|side| longest as f64 / side as f64);
        let scale = (most / (rows * columns))
            .sqrt()
            .min(1.0)
            .min(by_side[0])
            .min(by_side[1]);
        size.map(|side| {
            let scaled = ((side as f64 * scale) as u64).clamp(1, longest);
            scaled.div_ceil(self.patch * self.merge) * self.merge
        })
    }

    /// Positions of the images of a sample: their tokens, and one before and one after each.
    pub fn positions(&self, setup: &Setup) -> u64 {
        self.tokens(setup) + 2 * self.grids(setup).len() as u64
    }

    /// Tokens of the images of a sample.
    pub fn tokens(&self, setup: &Setup) -> u64 {
        let of = |[rows, columns]: [u64; 2]| rows * columns / self.merged();
        self.grids(setup).into_iter().map(of).sum()
    }

    pub(crate) fn read(s: &Section, layers: u64, patch: u64) -> Result<Self, ModelError> {
        let patch = s.side("patch_size", patch, limits::PIXELS)?;
        let merge = s.size("spatial_merge_size", 2, limits::COUNT)?;
        Ok(Self {
            layers: s.size("depth", layers, limits::LAYERS)?,
            heads: s.size_of_either(["num_heads", "num_attention_heads"], 16, limits::HEADS)?,
            channels: s.channels()?,
            patch,
            temporal_patch: s.side("temporal_patch_size", 2, limits::COUNT)?,
            merge,
            resize: Resize::of_tokens(Self::TOKENS, patch * merge, Widening::Never),
        })
    }
}

/// `round(n / unit)` of Python, which rounds a half to the even number.
fn nearest(n: u64, unit: u64) -> u64 {
    let (whole, rest) = (n / unit, n % unit);
    whole + u64::from(2 * rest > unit || (2 * rest == unit && whole % 2 == 1))
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
            resize: Resize::of_tokens(QwenPatches::TOKENS, 28, Widening::Never),
        };
        let grids = |image, image_sizes| {
            patches.grids(&Setup {
                image,
                image_sizes,
                ..Setup::default()
            })
        };
        let grid = |image| grids(image, Vec::new())[0];
        // 28 pixels a token: 336 are 12 tokens, 350 are 12.5 and round to 12, 378 are 13.5 and round to 14.
        assert_eq!(grid(Some(336)), [24, 24]);
        assert_eq!(grid(Some(350)), [24, 24]);
        assert_eq!(grid(Some(378)), [28, 28]);
        assert_eq!(grid(Some(1)), [4, 4]);
        assert_eq!(grid(Some(u64::MAX)), [256, 256]);
        assert_eq!(grid(None), [24, 24]);
        // A poster is scaled down and a stripe up, as in `smart_resize`.
        let sizes = vec![[480, 640], [300, 200], [16_000, 8000], [10, 100]];
        assert_eq!(grids(None, sizes), [[34, 46], [22, 14], [362, 180], [2, 14]]);
    }

    /// Sizes that `smart_resize` of Ovis2.5's repository makes of [height, width]: a photo, a line of text, an icon, a poster.
    #[test]
    fn ovis_widens_by_the_shorter_side() {
        let patches = QwenPatches {
            layers: 27,
            heads: 16,
            channels: 3,
            patch: 16,
            temporal_patch: 1,
            merge: 2,
            resize: Resize {
                pixels: [448 * 448, 1344 * 1792],
                widening: Widening::Shorter,
            },
        };
        let setup = Setup {
            image_sizes: vec![[480, 640], [20, 300], [10, 20], [16_000, 8000], [40, 9000]],
            ..Setup::default()
        };
        assert_eq!(
            patches.grids(&setup),
            [[30, 40], [8, 110], [20, 40], [136, 68], [2, 500]]
        );
    }
}
