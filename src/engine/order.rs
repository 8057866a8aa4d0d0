//! Sorting with a small code footprint. Each use of the standard library's sorts, which are made for long lists, adds
//! kilobytes to the page: 15 KB (after Brotli) to the first program and 83 KB to the single-file page if all of them
//! used it. Here one instantiation sorts indices, whatever the type of the items.

use std::cmp::Ordering;

/// Sorts by a key, keeping the order of equals.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts, keeping the order of equals.
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut from = argsort(items.len(), &|a, b| compare(&items[a], &items[b]));
    // Follow each cycle of the permutation, so that every item is swapped into its final place once.
    for start in 0..items.len() {
        let mut at = start;
        while from[at] != start {
            let next = from[at];
            items.swap(at, next);
            from[at] = at;
            at = next;
        }
        from[at] = at;
    }
}

/// Returns the indices of `len` items in sorted order.
fn argsort(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..len).collect();
    places.sort_by(|&a, &b| compare(a, b));
    places
}

/// Sorts by a key, keeping the order of equals, without memory of its own; quadratic, so for a few
/// items that are sorted often.
pub fn sort_short_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    for end in 1..items.len() {
        let mut i = end;
        while i > 0 && key(&items[i]) < key(&items[i - 1]) {
            items.swap(i, i - 1);
            i -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_standard_librarys_order(keys in prop::collection::vec(0..9u8, 0..40)) {
            let given: Vec<_> = keys.into_iter().enumerate().collect();
            let mut standard = given.clone();
            standard.sort_by_key(|(_, key)| *key);
            let (mut short, mut long) = (given.clone(), given);
            sort_short_by_key(&mut short, |(_, key)| *key);
            sort_by_key(&mut long, |(_, key)| *key);
            prop_assert_eq!(&short, &standard);
            prop_assert_eq!(&long, &standard);
        }
    }
}
