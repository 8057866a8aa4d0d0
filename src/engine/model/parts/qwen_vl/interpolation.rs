//! Interpolation of each patch's position on a square grid of learned positions
//! (`get_vision_interpolation_indices_and_weights` with `mode="bilinear"`).

use super::layout::Layout;
use crate::dtype::DType;
use crate::nn::ids;
use crate::tape::{Tape, Tensor};

/// Neighbours along one axis.
const TAPS: u64 = 2;

/// The four neighbours of each patch, [patches, 4], and their weights in fp32. `grid` is [images, 3].
pub fn interpolation(t: &Tape, layout: &Layout, grid: &Tensor) -> (Tensor, Tensor) {
    interpolation_by(t, layout, grid, (TAPS, axis))
}

/// The neighbours of each patch, [patches, taps²], and their weights in fp32. `axis` makes the `taps` neighbours of each
/// patch on one axis, [patches, taps], and their weights.
pub fn interpolation_by(
    t: &Tape,
    layout: &Layout,
    grid: &Tensor,
    (taps, axis): (u64, impl Fn(&Tape, u64) -> (Tensor, Tensor)),
) -> (Tensor, Tensor) {
    let n = layout.patches();
    let images = layout.images().len() as u64;
    let of_patches = |name| ids(t, &[n], name);
    let counts = {
        let areas = ids(t, &[images], "rows times columns");
        let counts = ids(t, &[images], "patches of an image");
        drop(areas);
        counts
    };
    let column = t.select(grid, 1);
    let heights = t.repeat_interleave_ids(&column, &counts, n);
    let widths = t.repeat_interleave_ids(&column, &counts, n);
    let starts = {
        let first = padded_sums(t, &counts);
        t.repeat_interleave_ids(&first, &counts, n)
    };
    let within = {
        let place = arange_minus(t, n);
        let areas = of_patches("rows times columns");
        let within = of_patches("remainder");
        drop((areas, place));
        within
    };
    let two_steps = |first, second| {
        let between = of_patches(first);
        let out = of_patches(second);
        drop(between);
        out
    };
    let blocks = of_patches("blocks a row");
    let in_column = of_patches("column in a block");
    let in_row = two_steps("floor_divide", "row in a block");
    let block_column = two_steps("floor_divide", "column of blocks");
    let block_row = two_steps("mul by a number", "row of blocks");
    let row = two_steps("mul by a number", "row");
    let column = two_steps("mul by a number", "column");
    let (row_taps, row_weights) = axis(t, n);
    let (column_taps, column_weights) = axis(t, n);
    let indices = {
        let scaled = ids(t, &[n, taps, 1], "mul by a number");
        let indices = ids(t, &[n, taps * taps], "indices of neighbours");
        drop(scaled);
        indices
    };
    let weights = t.empty([n, taps * taps], DType::F32, "weights of neighbours");
    drop((row_taps, row_weights, column_taps, column_weights));
    drop((counts, heights, widths, starts, within, blocks));
    drop((in_column, in_row, block_column, block_row, row, column));
    (indices, weights)
}

/// `F.pad(counts.cumsum(0)[:-1], (1, 0))`.
fn padded_sums(t: &Tape, counts: &Tensor) -> Tensor {
    let sums = t.cumsum_ids(counts, DType::I64);
    let padded = t.compute(counts, DType::I64, "first patch of an image");
    drop(sums);
    padded
}

/// `torch.arange(counts.sum()) - starts`.
fn arange_minus(t: &Tape, n: u64) -> Tensor {
    let total = ids(t, &[], "sum");
    let arange = ids(t, &[n], "arange");
    drop(total);
    let place = ids(t, &[n], "sub");
    drop(arange);
    place
}

/// `_interpolation_axis_taps_weights`: neighbours of each patch on one axis, [patches, 2], and their
/// weights.
fn axis(t: &Tape, n: u64) -> (Tensor, Tensor) {
    let float = |taps, name| t.empty([n, taps], DType::F32, name);
    let index = float(1, "index as float");
    let source = {
        let scaled = float(1, "mul by a number");
        let shorter = ids(t, &[n], "sub a number");
        let most = ids(t, &[n], "clamp");
        drop(shorter);
        let source = float(1, "place on the grid");
        drop((scaled, most));
        source
    };
    let floor = float(1, "floor");
    let offsets = ids(t, &[TAPS], "arange");
    let raw = {
        let whole = ids(t, &[n], "floor as integers");
        let raw = ids(t, &[n, TAPS], "neighbours");
        drop(whole);
        raw
    };
    let taps = ids(t, &[n, TAPS], "clamp");
    let distance = {
        let mut distance = float(1, "sub");
        for name in ["sub", "abs"] {
            distance = float(TAPS, name);
        }
        distance
    };
    let weights = {
        let hat = float(TAPS, "sub");
        let weights = float(TAPS, "clamp");
        drop(hat);
        weights
    };
    drop((index, source, floor, offsets, raw, distance));
    (taps, weights)
}
