//! From a model and a setup to a report.

use std::fmt;

use crate::{Model, Report, Setup};

/// Why a setup cannot be simulated: what was given, what is allowed, what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulateError(pub String);

impl fmt::Display for SimulateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SimulateError {}

/// Simulates three training steps.
///
/// # Errors
/// When the setup does not fit the model (zero batch, text shorter than its image tokens, …).
pub fn simulate(_model: &Model, _setup: &Setup) -> Result<Report, SimulateError> {
    Err(SimulateError("not yet".into()))
}
