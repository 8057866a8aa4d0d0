//! Time spans in seconds.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

use serde::{Deserialize, Serialize};

/// A time span.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seconds(f64);

impl Seconds {
    /// `s` seconds.
    pub const fn new(s: f64) -> Self {
        Self(s)
    }

    /// `us` microseconds.
    pub const fn micros(us: f64) -> Self {
        Self(us * 1e-6)
    }

    /// The span in seconds.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The span in milliseconds.
    pub const fn as_millis(self) -> f64 {
        self.0 * 1e3
    }

    /// The longer of two spans.
    pub const fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            s if s < 1e-3 => write!(f, "{:.1} µs", s * 1e6),
            s if s < 1.0 => write!(f, "{:.1} ms", s * 1e3),
            s => write!(f, "{s:.2} s"),
        }
    }
}

impl Add for Seconds {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Seconds {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Mul<f64> for Seconds {
    type Output = Self;
    fn mul(self, n: f64) -> Self {
        Self(self.0 * n)
    }
}

impl Sum for Seconds {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), Add::add)
    }
}
