//! Fits images of any size into tiles as LLaVA-NeXT does (`transformers/models/llava_next/modeling_llava_next.py`,
//! `transformers/image_processing_utils.py`).

/// An image after it was fitted into one of the allowed resolutions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnyRes {
    /// Tiles `[down, across]`, without the downscaled whole image.
    pub tiles: [u64; 2],
    /// Patches `[rows, columns]` of the tiles that are left once padding is cut off.
    pub patches: [u64; 2],
    /// Features `[rows, columns]` to which these are interpolated, if there are too many (LLaVA-OneVision).
    pub resized: Option<[u64; 2]>,
}

impl AnyRes {
    /// Fits an image of `[height, width]` pixels.
    pub fn fit(size: [u64; 2], pinpoints: &[[u64; 2]], tile: u64, patch: u64) -> Self {
        Self::fit_features(size, pinpoints, tile, tile / patch)
    }

    /// Fits an image of `[height, width]` pixels, of which each tile has `side` features a side.
    pub fn fit_features(size: [u64; 2], pinpoints: &[[u64; 2]], tile: u64, side: u64) -> Self {
        let [height, width] = best_resolution(size, pinpoints);
        let tiles = [height / tile, width / tile];
        Self {
            tiles,
            patches: unpadded(size, [tiles[0] * side, tiles[1] * side]),
            resized: None,
        }
    }

    /// The whole image in one tile, with a newline after it: how LLaVA-OneVision takes several images.
    pub const fn whole() -> Self {
        Self {
            tiles: [0, 0],
            patches: [1, 0],
            resized: None,
        }
    }

    /// Interpolates the patches, if they are more than about `most` tiles of `side` patches a side hold.
    pub fn at_most(self, most: u64, side: u64) -> Self {
        let [rows, columns] = self.patches;
        let ratio = ((rows * columns) as f64 / (most * side * side) as f64).sqrt();
        let resize = |n: u64| (n as f64 / ratio).floor() as u64;
        Self {
            resized: (ratio > 1.1).then(|| [resize(rows), resize(columns)]),
            ..self
        }
    }

    /// Number of tiles, plus the downscaled whole image.
    pub fn inputs(&self) -> u64 {
        self.tiles[0] * self.tiles[1] + 1
    }

    /// Tokens of the tiles: their patches and a newline after each row.
    pub fn tile_tokens(&self) -> u64 {
        let [rows, columns] = self.resized.unwrap_or(self.patches);
        rows * (columns + 1)
    }
}

/// `select_best_resolution`: the resolution that keeps the most pixels, and of equals the smallest.
fn best_resolution([height, width]: [u64; 2], pinpoints: &[[u64; 2]]) -> [u64; 2] {
    let kept = |[h, w]: [u64; 2]| {
        let scale = (w as f64 / width as f64).min(h as f64 / height as f64);
        let scaled = |n: u64| (n as f64 * scale) as u64;
        (scaled(width) * scaled(height)).min(width * height)
    };
    let waste = |p: [u64; 2]| p[0] * p[1] - kept(p).min(p[0] * p[1]);
    let better = |a: &[u64; 2], b: &[u64; 2]| kept(*a).cmp(&kept(*b)).then(waste(*b).cmp(&waste(*a)));
    // `max_by` takes the last of equals, transformers the first.
    pinpoints
        .iter()
        .rev()
        .copied()
        .max_by(better)
        .unwrap_or([height, width])
}

/// `unpad_image`: patches `[rows, columns]` without padding.
fn unpadded([height, width]: [u64; 2], [rows, columns]: [u64; 2]) -> [u64; 2] {
    if width * rows > columns * height {
        let kept = height * columns / width;
        [rows - (rows - kept) / 2 * 2, columns]
    } else {
        let kept = width * rows / height;
        [rows, columns - (columns - kept) / 2 * 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PINPOINTS: [[u64; 2]; 5] = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]];

    /// Token counts of the processor for CLIP-L at 336 pixels, including the 576 of the whole image.
    #[test]
    fn images_take_as_many_tokens_as_the_processor_says() {
        let tokens = |height, width| {
            let fitted = AnyRes::fit([height, width], &PINPOINTS, 336, 14);
            (fitted.tiles, 576 + fitted.tile_tokens())
        };
        assert_eq!(tokens(672, 672), ([2, 2], 2928));
        assert_eq!(tokens(336, 672), ([1, 2], 1752));
        assert_eq!(tokens(224, 224), ([1, 2], 1176));
        // 1024 × 640: 48 × 30 patches
        assert_eq!(tokens(1024, 640), ([2, 2], 576 + 48 * 31));
        assert_eq!(tokens(400, 1300), ([1, 3], 576 + 22 * 73));
    }
}
