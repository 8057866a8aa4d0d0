//! Pseudo-random numbers that are the same on every machine, so that an answer is.

/// Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (14), 2003: the triple (13, 7, 17).
#[derive(Debug, Clone)]
pub(crate) struct Xorshift(u64);

impl Xorshift {
    /// Makes the generator of this seed.
    pub const fn new(number: u64) -> Self {
        // The golden ratio's bits spread neighbouring seeds; a state is never 0.
        Self(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(number.wrapping_add(1)) | 1)
    }

    /// Returns the next number.
    pub const fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
