//! Rates of floating-point operations.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Seconds;

/// Floating-point operations a second; a multiply-add counts two.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FlopRate(f64);

impl FlopRate {
    /// `n` × 10¹² operations a second.
    pub const fn teraflops(n: f64) -> Self {
        Self(n * 1e12)
    }

    /// The rate in 10¹² operations a second.
    pub const fn as_teraflops(self) -> f64 {
        self.0 / 1e12
    }

    /// The time that `flops` operations take.
    pub fn time_for(self, flops: f64) -> Seconds {
        Seconds::new(flops / self.0)
    }
}

impl fmt::Display for FlopRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} TFLOPS", self.as_teraflops())
    }
}
