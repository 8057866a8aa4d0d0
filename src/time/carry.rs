//! Carries measured kernel times from one card to another by the data sheets of both.
//!
//! What the rules assume was read from 1,001 kernels that one program measured on an H100 and on an H200, whose
//! multiprocessors, clock and arithmetic are equal and whose bandwidths are 3.35 and 4.8 TB/s (`tests/data/records`); a
//! test holds how well they tell each card's kernels from the other's:
//!
//! - A matrix product or fused attention hides its memory behind its arithmetic: it takes the time of its arithmetic,
//!   or that of its bytes where these take longer.
//! - Any other kernel waits for its bytes and then for itself: what the bytes take at the card's bandwidth is
//!   replaced, and the rest stays. Kernels of a few MiB are no exception: between calls a cache keeps too little.
//! - What a launch takes at least is no property of the card.
//!
//! Arithmetic follows the peak rate of the products' dtype, times the published share that such kernels reach where
//! the generations differ; the rest of other kernels follows multiprocessors × clock.

use super::rates::{LATENCY, Rates, flops};
use super::spread::Source;
use vramscope_engine::tape::work::Launch;

/// Data sheets of the card whose kernels were measured, and of the one that is asked about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Carry {
    /// Rates of the measured card.
    pub from: Rates,
    /// Rates of the card that is asked about.
    pub to: Rates,
}

impl Carry {
    /// Seconds of a kernel on the other card, given those on the measured one.
    pub fn kernel(&self, launch: &Launch, seconds: f64) -> f64 {
        let Self { from, to } = self;
        let bytes = launch.bytes() as f64;
        if flops(launch) > 0.0 {
            let arithmetic = to.reached(launch) / from.reached(launch);
            return slower(seconds, arithmetic).max(bytes / to.bytes);
        }
        let waited = (bytes / from.bytes).min(seconds);
        let rest = slower(seconds - waited, to.issue / from.issue);
        rest + waited * from.bytes / to.bytes
    }

    /// The source of a carried time.
    pub fn source(&self) -> Source {
        Source::Carried {
            same_generation: self.from.generation == self.to.generation,
        }
    }

    /// Seconds of a copy between host and card, which the host's link bounds.
    pub fn transfer(&self, seconds: f64) -> f64 {
        slower(seconds, self.to.pcie / self.from.pcie)
    }
}

/// Seconds of what took `seconds` if all but the least time of a launch goes `rate` times as fast.
fn slower(seconds: f64, rate: f64) -> f64 {
    let launch = seconds.min(LATENCY);
    launch + (seconds - launch) / rate
}
