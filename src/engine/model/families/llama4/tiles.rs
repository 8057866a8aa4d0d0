//! Tiles that Llama 4's processor cuts an image into (`image_processing_llama4.py`).

/// Most tiles of an image (`max_patches`), without the whole image scaled down.
const MOST: u64 = 16;

/// Number of tiles of `side` pixels of an image of [height, width], with the whole image if there are several
/// (`get_best_fit`).
pub fn tiles_of(side: u64, [height, width]: [u64; 2]) -> u64 {
    let canvases = (1..=MOST).flat_map(|rows| (1..=MOST / rows).map(move |columns| [rows, columns]));
    let scale = |[rows, columns]: [u64; 2]| {
        let along = |tiles: u64, pixels: u64| (tiles * side) as f32 / pixels as f32;
        along(rows, height).min(along(columns, width))
    };
    let scales: Vec<(f32, u64)> = canvases.map(|canvas| (scale(canvas), canvas[0] * canvas[1])).collect();
    let up = scales.iter().map(|(scale, _)| *scale).filter(|scale| *scale >= 1.0);
    let down = scales.iter().map(|(scale, _)| *scale).filter(|scale| *scale < 1.0);
    let chosen = up.reduce(f32::min).or(down.reduce(f32::max)).unwrap_or(1.0);
    let fitting = scales.iter().filter(|(scale, _)| *scale == chosen);
    match fitting.map(|(_, tiles)| *tiles).min() {
        Some(tiles) if tiles > 1 => tiles + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::tiles_of;

    /// The example of `get_best_fit`: an image of 200 × 300 pixels fits [224, 448], and one that fits a tile is not cut.
    #[test]
    fn the_smallest_canvas_that_fits_is_taken() {
        assert_eq!(tiles_of(224, [200, 300]), 3);
        assert_eq!(tiles_of(336, [300, 300]), 1);
        assert_eq!(tiles_of(336, [2000, 2000]), 17);
    }
}
