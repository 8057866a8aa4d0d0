//! Memory and link bandwidth.

use std::fmt;
use std::ops::Div;

use serde::{Deserialize, Serialize};

use super::{Bytes, Seconds};

/// A rate of moving bytes, in the decimal units of data sheets (1 GB/s = 10⁹ bytes a second).
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bandwidth(f64);

impl Bandwidth {
    /// `n` × 10⁹ bytes a second.
    pub const fn gb_per_s(n: f64) -> Self {
        Self(n * 1e9)
    }

    /// The rate in 10⁹ bytes a second.
    pub const fn as_gb_per_s(self) -> f64 {
        self.0 / 1e9
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} GB/s", self.as_gb_per_s())
    }
}

/// Time to move `bytes` at this rate.
impl Div<Bandwidth> for Bytes {
    type Output = Seconds;
    fn div(self, rate: Bandwidth) -> Seconds {
        Seconds::new(self.get() as f64 / rate.0)
    }
}
