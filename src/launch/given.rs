//! Types of the values in a launch, and the reasons to refuse one.

/// Type of loaded weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weights {
    Fp32,
    Bf16,
    Fp16,
    /// As the checkpoint has them.
    Auto,
}

/// Modules that get adapters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Targets {
    /// All linear layers, or those of the language model if the tower is frozen.
    AllLinear,
    /// Maps of these names.
    Named(Vec<String>),
    /// Maps of these names in the language model alone.
    InLanguageModel(Vec<String>),
}

/// Result of setting a value.
pub(crate) type Set = Result<(), Fault>;

/// Reason to refuse a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    /// It is none that the key takes; the text says which are.
    Wrong(&'static str),
    /// The tool takes it, and it is not simulated.
    NotSimulated(&'static str),
}
