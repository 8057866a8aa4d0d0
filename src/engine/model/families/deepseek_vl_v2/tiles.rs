//! Fitting of images to tiles (`select_best_resolution` of `processing_deepseek_vl_v2.py`).

/// Most images of a sample that are cut into tiles; in a sample with more, each image is one tile.
pub const MOST_CUT: usize = 2;

/// Width and height in pixels of the candidate that keeps the most pixels of an image of `[height, width]` when it is scaled to
/// fit in; of several that keep as many, the one that wastes the fewest.
pub fn fitted([height, width]: [u64; 2], candidates: &[[u64; 2]]) -> [u64; 2] {
    let (mut best, mut most, mut least) = ([0, 0], 0, u64::MAX);
    for &[across, down] in candidates {
        let scale = (across as f64 / width as f64).min(down as f64 / height as f64);
        let scaled = (width as f64 * scale) as u64 * (height as f64 * scale) as u64;
        let kept = scaled.min(width * height);
        let wasted = (across * down).saturating_sub(kept);
        if kept > most || kept == most && wasted < least {
            (best, most, least) = ([across, down], kept, wasted);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chooses among the published candidates as `select_best_resolution` does (`processing_deepseek_vl_v2.py`).
    #[test]
    fn an_image_keeps_the_most_of_its_pixels() {
        let mut candidates: Vec<[u64; 2]> = (1..=9)
            .flat_map(|n| (1..=9).map(move |m| [384 * m, 384 * n]))
            .filter(|[w, h]| w * h <= 9 * 384 * 384)
            .collect();
        candidates.sort_by_key(|[w, h]| w * h);
        for (size, best) in CASES {
            assert_eq!(fitted(size, &candidates), best, "{size:?}");
        }
    }

    /// `[height, width]`, and the width and height of the candidate.
    const CASES: [([u64; 2], [u64; 2]); 5] = [
        ([100, 300], [384, 384]),
        ([384, 384], [384, 384]),
        ([480, 640], [768, 768]),
        ([1000, 300], [384, 1152]),
        ([3000, 3000], [1152, 1152]),
    ];
}
