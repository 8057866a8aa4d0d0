//! Tiles and patches that are no padding.

use crate::dtype::DType;
use crate::model::config::PatchGrid;
use crate::tape::{Tape, Tensor};

/// Drops tiles of zeros, which only pad samples of fewer images; SmolVLM first looks for any that is not.
pub fn real_tiles(t: &Tape, pixels: &Tensor, count: u64, looks_for_any: bool) -> (Tensor, Tensor) {
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
    let places = t.nonzero(&real, count);
    let kept = t.empty([count, channels, side, side], pixels.dtype(), "pixels of real tiles");
    drop(places);
    (kept, real)
}

/// The pixels of [tiles, channels, side, side] that are no padding, [tiles, side, side]: all, or those of the batch's mask in
/// int64, of which the real tiles are taken.
pub fn pixel_mask(t: &Tape, pixels: &Tensor, is_masked: bool) -> Tensor {
    let (tiles, shape) = (pixels.size(0), [pixels.size(0), pixels.size(2), pixels.size(3)]);
    if !is_masked {
        return t.empty(shape, DType::Bool, "pixel mask");
    }
    let places = t.nonzero(&t.empty([tiles], DType::Bool, "real tiles"), tiles);
    let mask = t.empty(shape, DType::I64, "pixel mask");
    drop(places);
    mask
}

/// Marks the patches of [tiles, side, side] that hold a real pixel, [tiles, rows, columns].
pub fn real_patches(t: &Tape, mask: &Tensor, grid: PatchGrid) -> Tensor {
    let (tiles, side, patch) = (mask.size(0), grid.side(), grid.patch);
    let counts = t.empty([tiles, side, side], DType::I64, "real pixels of patches");
    if mask.dtype() == DType::Bool {
        drop(t.empty([tiles, side, side, patch, patch], DType::I64, "mask as integers"));
    }
    t.compute(&counts, DType::Bool, "real patches")
}
