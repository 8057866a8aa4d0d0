//! Amounts of memory in bytes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// An exact amount of memory, in bytes.
///
/// Printed in binary units (KiB, MiB, GiB), which is what PyTorch prints; a card's data sheet
/// says "24 GB" and means 24 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// Exactly `n` bytes.
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// `n` × 2²⁰ bytes.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    /// `n` × 2³⁰ bytes.
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }

    /// The exact count.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The count in units of 2³⁰ bytes, for display.
    pub fn as_gib(self) -> f64 {
        self.0 as f64 / (1u64 << 30) as f64
    }

    /// Signed difference `self - other` in bytes. Both are far below 2⁶³, as memory is.
    pub const fn difference_to(self, other: Self) -> i64 {
        self.0 as i64 - other.0 as i64
    }

    /// Subtraction that stops at zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0 as f64;
        match self.0 {
            0..1024 => write!(f, "{} B", self.0),
            1024..1_048_576 => write!(f, "{:.1} KiB", n / 1024.0),
            1_048_576..1_073_741_824 => write!(f, "{:.1} MiB", n / 1_048_576.0),
            _ => write!(f, "{:.2} GiB", n / 1_073_741_824.0),
        }
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self(self.0 * n)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}
