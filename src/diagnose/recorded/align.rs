//! Alignment of two sequences of allocation sizes.

use std::collections::HashMap;
use std::ops::Range;

/// Number of consecutive sizes that must match for two places to correspond.
const ROW: usize = 12;

/// Maximum number of sizes skipped on both sides together to find the next match.
const MOST_SKIPPED: usize = 2048;

/// Side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Ours,
    Theirs,
}

/// Sizes on either side without a match on the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Skip {
    /// Number of matches before it.
    pub alike: u64,
    pub ours: Range<usize>,
    pub theirs: Range<usize>,
    /// True if nothing matches after it.
    pub is_end: bool,
}

/// Alignment of both sequences.
pub(super) struct Walk {
    pub alike: u64,
    pub skips: Vec<Skip>,
}

/// Finds the offset in `theirs` at which most rows of `ours` match: the number of our sizes before the first of theirs,
/// and the place in theirs; `None` if no row matches.
pub(super) fn find(ours: &[u64], theirs: &[u64]) -> Option<(usize, usize)> {
    let row = ROW.min(ours.len());
    if row == 0 {
        return None;
    }
    let mut places: HashMap<&[u64], Vec<usize>> = HashMap::new();
    for (at, window) in ours.windows(row).enumerate() {
        // A single repeated size does not identify a place.
        if window.iter().any(|size| *size != window[0]) {
            places.entry(window).or_default().push(at);
        }
    }
    let mut votes: HashMap<i64, u64> = HashMap::new();
    for (at, window) in theirs.windows(row).enumerate() {
        for &own in places.get(window).into_iter().flatten().take(64) {
            *votes.entry(at as i64 - own as i64).or_default() += 1;
        }
    }
    // Ties go to the last offset: a later step resembles the recording's last step more.
    let (shift, _) = votes.into_iter().max_by_key(|&(shift, votes)| (votes, shift))?;
    Some(match usize::try_from(shift) {
        Ok(at) => (0, at),
        Err(_) => (shift.unsigned_abs() as usize, 0),
    })
}

/// Walks along both until one ends or nothing more matches.
pub(super) fn walk(ours: &[u64], theirs: &[u64]) -> Walk {
    let (mut i, mut j, mut alike) = (0, 0, 0);
    let mut skips = Vec::new();
    while i < ours.len() && j < theirs.len() {
        if ours[i] == theirs[j] {
            (i, j, alike) = (i + 1, j + 1, alike + 1);
            continue;
        }
        let next = resume(&ours[i..], &theirs[j..]);
        let (di, dj) = next.unwrap_or((ours.len() - i, 0));
        skips.push(Skip {
            alike,
            ours: i..i + di,
            theirs: j..j + dj,
            is_end: next.is_none(),
        });
        if next.is_none() {
            break;
        }
        (i, j) = (i + di, j + dj);
    }
    Walk { alike, skips }
}

/// Returns how many to skip on each side, as few as possible, until a row matches.
fn resume(ours: &[u64], theirs: &[u64]) -> Option<(usize, usize)> {
    let alike = |di: usize, dj: usize| {
        let (a, b) = (ours.get(di..)?, theirs.get(dj..)?);
        let row = ROW.min(a.len()).min(b.len());
        // Fewer sizes than a row may be left of ours.
        (row > 0 && a[..row] == b[..row]).then_some((di, dj))
    };
    let most = MOST_SKIPPED.min(ours.len() + theirs.len());
    (1..=most).find_map(|both| (0..=both).find_map(|di| alike(di, both - di)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: u64) -> Vec<u64> {
        (0..n).map(|i| i * i % 97 + 512).collect()
    }

    #[test]
    fn what_one_side_has_more_is_skipped() {
        let ours = numbers(80);
        let mut theirs = ours.clone();
        theirs.insert(30, 7);
        theirs.remove(60);
        let walk = walk(&ours, &theirs);
        assert_eq!(walk.alike, 79);
        let seen: Vec<_> = walk
            .skips
            .iter()
            .map(|skip| (skip.ours.clone(), skip.theirs.clone()))
            .collect();
        assert_eq!(seen, [(30..30, 30..31), (59..60, 60..60)]);
        assert!(walk.skips.iter().all(|skip| !skip.is_end));
    }

    #[test]
    fn sequences_that_share_nothing_part() {
        let walk = walk(&[1, 2, 3], &[4, 5, 6]);
        assert_eq!((walk.alike, walk.skips.len(), walk.skips[0].is_end), (0, 1, true));
    }

    #[test]
    fn a_step_is_found_where_most_of_it_is() {
        let step = numbers(60);
        let mut theirs = vec![9; 100];
        theirs.extend(&step[..20]);
        theirs.extend(&step);
        theirs.extend([3, 4]);
        assert_eq!(find(&step, &theirs), Some((0, 120)));
        assert_eq!(find(&step, &theirs[140..]), Some((20, 0)));
        assert_eq!(find(&step, &[1; 50]), None);
        assert_eq!(find(&[], &theirs), None);
    }
}
