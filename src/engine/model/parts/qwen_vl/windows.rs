//! Windows of patches (`get_vision_window_index`).

use super::attention::Segments;
use super::layout::{Grid, Layout};
use crate::dtype::DType;
use crate::tape::{Tape, Tensor};

/// Makes segments of the windows of all images, `side` tokens a side. The order of tokens by windows is computed on the
/// host.
pub fn windows(t: &Tape, layout: &Layout, side: u64) -> Segments {
    let unit = layout.merge * layout.merge;
    let mut lengths = Vec::new();
    let mut padded = 0;
    for image in layout.images() {
        let [rows, columns] = [image.rows, image.columns].map(|n| n / layout.merge);
        // If the tokens divide evenly, a whole window is added as padding.
        padded += image.frames * (rows / side + 1) * (columns / side + 1);
        lengths.extend(of_image(image, [rows, columns], side).map(|tokens| tokens * unit));
    }
    Segments::new(lengths, bounds(t, padded))
}

/// Tokens of each non-empty window, frame by frame, from left to right and top to bottom.
fn of_image(image: &Grid, [rows, columns]: [u64; 2], side: u64) -> impl Iterator<Item = u64> {
    let parts = move |n: u64| (0..n.div_ceil(side)).map(move |i| side.min(n - i * side));
    let frames = 0..image.frames;
    frames.flat_map(move |_| parts(rows).flat_map(move |h| parts(columns).map(move |w| h * w)))
}

/// `torch.unique_consecutive` of the bounds of all windows, empty ones too.
fn bounds(t: &Tape, windows: u64) -> Tensor {
    let all = t.empty([windows + 1], DType::I32, "bounds of windows");
    let unique = t.unique_consecutive_ids(&all);
    drop(all);
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 × 18 tokens in windows of 4 × 4: fifteen, with narrower ones in the last row and column.
    #[test]
    fn windows_at_the_edges_are_narrower() {
        let image = Grid {
            frames: 1,
            rows: 20,
            columns: 36,
        };
        let lengths: Vec<u64> = of_image(&image, [10, 18], 4).collect();
        assert_eq!(lengths, [16, 16, 16, 16, 8, 16, 16, 16, 16, 8, 8, 8, 8, 8, 4]);
    }
}
