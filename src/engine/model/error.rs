//! Refusal of a configuration.

/// Reason that a configuration cannot be simulated: the value given, the values allowed, and the next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ModelError(pub String);
