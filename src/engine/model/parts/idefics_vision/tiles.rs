//! Tiles and patches that are no padding.

use crate::dtype::DType;
use crate::model::config::PatchGrid;
use crate::tape::{Tape, Tensor};

/// Drops tiles of zeros, which only pad samples of fewer images; SmolVLM first looks for any that is not.
pub fn real_tiles(t: &Tape, pixels: &Tensor, looks_for_any: bool) -> (Tensor, Tensor) {
    let [batch, images, channels, side] = [pixels.size(0), pixels.size(1), pixels.size(2), pixels.last()];
    let tiles = batch * images;
    let pixels = t.view(pixels, [tiles, channels, side, side]);
    let zeros = {
        let zero = t.compute(&pixels, DType::Bool, "pixels = 0");
        t.count(&zero, &[1, 2, 3])
    };
    let real = t.compute(&zeros, DType::Bool, "real tiles");
    drop(zeros);
    if looks_for_any {
        let any = t.empty([], DType::Bool, "any");
        let none = t.empty([], DType::Bool, "not any");
        drop(any);
        drop(none);
    }
    let places = t.nonzero(&real, tiles);
    let kept = t.empty(*pixels.shape(), pixels.dtype(), "pixels of real tiles");
    drop(places);
    (kept, real)
}

/// Marks the patches of [tiles, side, side] that hold a real pixel, [tiles, rows, columns].
pub fn real_patches(t: &Tape, mask: &Tensor, grid: PatchGrid) -> Tensor {
    let (tiles, side, patch) = (mask.size(0), grid.side(), grid.patch);
    let counts = t.empty([tiles, side, side], DType::I64, "real pixels of patches");
    drop(t.empty([tiles, side, side, patch, patch], DType::I64, "mask as integers"));
    t.compute(&counts, DType::Bool, "real patches")
}
