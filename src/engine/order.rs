//! Order in short lists. The standard library's sorts are made for long ones, and each use of one
//! adds kilobytes to the page.

/// Sorts by a key, keeping the order of equals; quadratic, so for short lists.
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
        fn it_is_the_standard_librarys_order(keys in prop::collection::vec(0..9u8, 0..20)) {
            let mut sorted: Vec<_> = keys.into_iter().enumerate().collect();
            let mut standard = sorted.clone();
            standard.sort_by_key(|(_, key)| *key);
            sort_short_by_key(&mut sorted, |(_, key)| *key);
            prop_assert_eq!(sorted, standard);
        }
    }
}
