//! Figures of a report as one line of JSON.

use serde::Serialize;

use super::{Report, Reserved, StepBytes, Warning};
use crate::units::Bytes;

/// The figures of a report as scripts read them: one JSON object on one line.
#[derive(Debug, Clone, Serialize)]
pub struct Prediction<'a> {
    /// Parameters of the model (elements).
    pub params: u64,
    /// Parameters that are trained (elements).
    pub trainable: u64,
    /// Allocated bytes once the model is made.
    pub after_model: Bytes,
    /// Allocated bytes at the marks of the steady step.
    pub steady: StepBytes,
    /// Highest allocated bytes of the steady step.
    pub peak_allocated: Bytes,
    /// Highest reserved bytes over the run's steps, of the layout that reserves most.
    pub peak_reserved: Bytes,
    /// Highest reserved bytes for each layout of the allocator's segments.
    pub reserved: &'a [Reserved],
    /// Bytes that the GPU holds outside PyTorch's allocator.
    pub outside_torch: Bytes,
    /// Warnings, each with the next step to take.
    pub warnings: &'a [Warning],
}

impl Report {
    /// The figures of this report as scripts read them, on a device that holds `outside_torch`
    /// outside the allocator (the sum of [`outside::terms`](crate::report::outside::terms)).
    pub fn prediction(&self, outside_torch: Bytes) -> Prediction<'_> {
        Prediction {
            params: self.params,
            trainable: self.trainable,
            after_model: self.after_model,
            steady: self.steady,
            peak_allocated: self.peak_allocated,
            peak_reserved: self.peak_reserved,
            reserved: &self.reserved,
            outside_torch,
            warnings: &self.warnings,
        }
    }
}
