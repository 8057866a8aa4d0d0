//! Tiles of one size that processors cut images into.

use crate::order::sort_by_key;

/// Tiles of `side` pixels that the processor cuts an image of `[height, width]` pixels into, plus the downscaled whole
/// image if there are several.
///
/// Source: `crop_image_to_patches` in `transformers/models/got_ocr2/image_processing_got_ocr2.py`, with 1 to 12
/// tiles as `InternVLProcessorKwargs` sets.
pub fn tiles_of([height, width]: [u64; 2], side: u64) -> u64 {
    const MOST: u64 = 12;
    let aspect = width as f64 / height as f64;
    let area = (width * height) as f64;
    let tile = (side * side) as f64;
    let mut arrangements: Vec<(u64, u64)> = (1..=MOST)
        .flat_map(|columns| (1..=MOST / columns).map(move |rows| (columns, rows)))
        .collect();
    sort_by_key(&mut arrangements, |(columns, rows)| columns * rows);
    let (mut closest, mut best) = (f64::INFINITY, 1);
    for (columns, rows) in arrangements {
        let difference = (aspect - columns as f64 / rows as f64).abs();
        let covered = 0.5 * tile * (columns * rows) as f64;
        if difference < closest || (difference == closest && area > covered) {
            (closest, best) = (difference, columns * rows);
        }
    }
    if best == 1 { 1 } else { best + 1 }
}
