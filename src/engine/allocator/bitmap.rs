//! Bitmap with a summary level.

/// A set of small numbers below `WORDS` × 64 that finds the next member fast.
#[derive(Debug, Clone)]
pub(super) struct Bitmap<const WORDS: usize, const SUMMARY: usize> {
    words: [u64; WORDS],
    /// One bit per word, set if the word is not zero.
    summary: [u64; SUMMARY],
}

impl<const WORDS: usize, const SUMMARY: usize> Default for Bitmap<WORDS, SUMMARY> {
    fn default() -> Self {
        const { assert!(SUMMARY == WORDS.div_ceil(64)) };
        Self {
            words: [0; WORDS],
            summary: [0; SUMMARY],
        }
    }
}

impl<const WORDS: usize, const SUMMARY: usize> Bitmap<WORDS, SUMMARY> {
    #[inline]
    pub fn insert(&mut self, n: usize) {
        let word = n / 64;
        self.words[word] |= 1 << (n % 64);
        self.summary[word / 64] |= 1 << (word % 64);
    }

    #[inline]
    pub fn remove(&mut self, n: usize) {
        let word = n / 64;
        self.words[word] &= !(1 << (n % 64));
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
    }

    /// The smallest member that is at least `n`.
    #[inline]
    pub fn next(&self, n: usize) -> Option<usize> {
        first_set(&self.words, n / 64, n % 64).or_else(|| {
            let word = n / 64 + 1;
            let summary = word / 64;
            let word = first_set(&self.summary, summary, word % 64)
                .or_else(|| (summary + 1..SUMMARY).find_map(|summary| first_set(&self.summary, summary, 0)))?;
            first_set(&self.words, word, 0)
        })
    }
}

/// The first bit of one word that is set from `bit` on, counted from the first word.
#[inline]
fn first_set(words: &[u64], word: usize, bit: usize) -> Option<usize> {
    let rest = words.get(word)? & (u64::MAX << bit);
    (rest != 0).then(|| word * 64 + rest.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_next_member_is_that_of_a_sorted_set(ops in proptest::collection::vec((0..3, 0_usize..100 * 64), 1..200)) {
            let mut bitmap = Bitmap::<100, 2>::default();
            let mut set = BTreeSet::new();
            for (op, n) in ops {
                match op {
                    0 => {
                        bitmap.insert(n);
                        set.insert(n);
                    }
                    1 => {
                        bitmap.remove(n);
                        set.remove(&n);
                    }
                    _ => {}
                }
                prop_assert_eq!(bitmap.next(n), set.range(n..).next().copied());
                prop_assert_eq!(bitmap.next(0), set.first().copied());
            }
        }
    }
}
