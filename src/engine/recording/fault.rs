//! Faults of single lines.

/// Fault of a line, displayed as the end of a sentence about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    /// The line is not a JSON object of its type's form.
    #[error("is not as the format says: {0}")]
    Json(String),
    /// The line uses an id that no earlier line declares.
    #[error("uses {0} {1}, which no line before it declares")]
    Undeclared(&'static str, u64),
    /// The line declares an id that is not the next one.
    #[error("declares {0} {1} where {2} comes next")]
    OutOfOrder(&'static str, u64, u64),
    /// The line uses or frees memory that was freed before.
    #[error("uses storage {0} after it was freed")]
    Freed(u64),
    /// The line exceeds a limit.
    #[error("has more {0} than a recording can hold")]
    TooMuch(&'static str),
    /// The number of strides differs from the number of dimensions.
    #[error("has another number of strides than of extents")]
    Strides,
    /// The line ends a step or a phase that did not begin.
    #[error("marks \"{0}\" where that cannot be")]
    Mark(String),
    /// The line comes after `end`, or is a second header.
    #[error("stands where no such line can")]
    SourceLine,
}
