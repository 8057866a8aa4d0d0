//! Refusal of a configuration.

/// Reason that a configuration cannot be simulated: the value given, the values allowed, and the next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ModelError(pub String);

impl ModelError {
    /// Error for a model whose group of families a frontend has not loaded ([`LazyGroup`](super::LazyGroup)).
    pub(super) fn not_loaded(name: &str) -> Self {
        Self(format!("the code of {name} is not loaded; load it, then try again"))
    }
}
