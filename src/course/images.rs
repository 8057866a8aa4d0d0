//! Computes the padding of images of different sizes in batches.

use super::List;
use vramscope_engine::order;

/// Returns the padded side of each image when the images are split into at most `groups` batches with the least padded
/// area. Every image takes the side of the largest in its batch.
///
/// In sorted order the best batches are contiguous, so dynamic programming finds the best way to cut the sorted list.
pub(super) fn padded(sizes: &List, groups: usize) -> List {
    let mut places: Vec<usize> = (0..sizes.0.len()).collect();
    order::sort_by(&mut places, |a, b| sizes.0[*a].total_cmp(&sizes.0[*b]));
    let sorted: Vec<f64> = places.iter().map(|i| sizes.0[*i]).collect();
    // best[k][n]: the least area of the first n images in k batches, and the start of the last batch. The loop adds a
    // batch at a time.
    let mut best = vec![vec![(0.0, 0); sorted.len() + 1]];
    best[0][1..].fill((f64::INFINITY, 0));
    for group in 0..groups.clamp(1, sorted.len().max(1)) {
        let mut next = vec![(0.0, 0)];
        for end in 1..=sorted.len() {
            let side = sorted[end - 1];
            let cost = |start: usize| best[group][start].0 + side * side * (end - start) as f64;
            let start = (0..end).min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(0);
            next.push((cost(start), start));
        }
        best.push(next);
    }
    let mut out = vec![0.0; sorted.len()];
    let (mut end, mut group) = (sorted.len(), best.len() - 1);
    while end > 0 {
        let start = best[group][end].1;
        for place in start..end {
            out[places[place]] = sorted[end - 1];
        }
        (end, group) = (start, group - 1);
    }
    List(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(sizes: &[f64], groups: usize) -> Vec<f64> {
        padded(&List(sizes.to_vec()), groups).0
    }

    #[test]
    fn one_batch_takes_the_largest_side() {
        assert_eq!(sides(&[224.0, 224.0, 1024.0], 1), [1024.0; 3]);
        assert_eq!(sides(&[], 3), [0.0; 0]);
    }

    #[test]
    fn batches_keep_the_order_of_the_images() {
        assert_eq!(sides(&[1024.0, 224.0, 230.0, 672.0], 3), [1024.0, 230.0, 230.0, 672.0]);
        assert_eq!(sides(&[3.0, 1.0], 9), [3.0, 1.0]);
    }
}
