//! Milliseconds of the phases of a step.

use serde::{Deserialize, Serialize};

/// Milliseconds of each phase as CUDA events measure them: forward and backward of the last micro-batch, and the
/// update.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Milliseconds {
    /// Forward: from the inputs to the loss.
    pub forward: f64,
    /// Backward: from the loss to the gradients.
    pub backward: f64,
    /// Gradient clipping, grad scaler, optimizer and `zero_grad`.
    pub optimizer: f64,
}
