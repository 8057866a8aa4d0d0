//! Draws numbers from a seed, so that the same seed gives the same exercise on every machine.

/// Index among `choices` (at least one) that the `index`-th number of an exercise takes under a seed.
///
/// Uses SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), because a
/// single step already scatters neighbouring seeds, and it needs no state.
///
/// ```
/// use vramscope_course::draw;
/// assert_eq!(draw(7, 0, 4), draw(7, 0, 4));
/// assert!((0..20).map(|seed| draw(seed, 0, 4)).any(|n| n != draw(0, 0, 4)));
/// ```
pub const fn draw(seed: u64, index: u64, choices: usize) -> usize {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut z = seed.wrapping_add(GOLDEN.wrapping_mul(index.wrapping_add(1)));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    if choices == 0 { 0 } else { (z % choices as u64) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_generator() {
        // First output of SplitMix64 from state 0.
        assert_eq!(draw(0, 0, usize::MAX) as u64, 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn every_choice_is_drawn_about_as_often() {
        let mut counts = [0; 5];
        for seed in 0..5000 {
            counts[draw(seed, 3, 5)] += 1;
        }
        assert!(counts.iter().all(|n| (900..1100).contains(n)), "{counts:?}");
    }
}
