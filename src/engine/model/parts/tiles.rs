//! Tiles of one size that processors cut images into.

use crate::order::sort_by_key;

/// Most tiles of an image.
const MOST: u64 = 12;

/// Columns and rows of up to [`MOST`] tiles, fewest tiles first.
fn arrangements() -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = (1..=MOST)
        .flat_map(|columns| (1..=MOST / columns).map(move |rows| (columns, rows)))
        .collect();
    sort_by_key(&mut all, |(columns, rows)| columns * rows);
    all
}

/// Tiles of `side` pixels that the processor cuts an image of `[height, width]` pixels into, plus the downscaled whole
/// image if there are several.
///
/// Source: `crop_image_to_patches` in `transformers/models/got_ocr2/image_processing_got_ocr2.py`, with 1 to 12
/// tiles as `InternVLProcessorKwargs` sets.
pub fn tiles_of([height, width]: [u64; 2], side: u64) -> u64 {
    let aspect = width as f64 / height as f64;
    let area = (width * height) as f64;
    let tile = (side * side) as f64;
    let (mut closest, mut best) = (f64::INFINITY, 1);
    for (columns, rows) in arrangements() {
        let difference = (aspect - columns as f64 / rows as f64).abs();
        let covered = 0.5 * tile * (columns * rows) as f64;
        if difference < closest || (difference == closest && area > covered) {
            (closest, best) = (difference, columns * rows);
        }
    }
    if best == 1 { 1 } else { best + 1 }
}

/// Number of tiles of the arrangement that enlarges the image least, or shrinks it least if all arrangements shrink it.
///
/// Source: `get_optimal_tiled_canvas` in `transformers/models/cohere2_vision/image_processing_cohere2_vision.py`.
pub fn scaled_tiles_of([height, width]: [u64; 2], side: u64) -> u64 {
    let scale = |(columns, rows): (u64, u64)| {
        let along = |tiles: u64, pixels: u64| (tiles * side) as f64 / pixels as f64;
        along(columns, width).min(along(rows, height))
    };
    let (mut least, mut largest) = (None, None);
    for arrangement in arrangements() {
        let (scale, tiles) = (scale(arrangement), arrangement.0 * arrangement.1);
        if scale >= 1.0 && least.is_none_or(|(best, _)| scale < best) {
            least = Some((scale, tiles));
        }
        if largest.is_none_or(|(best, _)| scale > best) {
            largest = Some((scale, tiles));
        }
    }
    match least.or(largest) {
        Some((_, tiles)) if tiles > 1 => tiles + 1,
        _ => 1,
    }
}
