//! Faults of single lines.

use std::fmt;

/// Fault of a line, displayed as the end of a sentence about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// The line is not a JSON object of its type's form.
    Json(String),
    /// The line uses an id that no earlier line declares.
    Undeclared(&'static str, u64),
    /// The line declares an id that is not the next one.
    OutOfOrder(&'static str, u64, u64),
    /// The line uses or frees memory that was freed before.
    Freed(u64),
    /// The line exceeds a limit.
    TooMuch(&'static str),
    /// The number of strides differs from the number of dimensions.
    Strides,
    /// The line ends a step or a phase that did not begin.
    Mark(String),
    /// The line comes after `end`, or is a second header.
    SourceLine,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(why) => write!(f, "is not as the format says: {why}"),
            Self::Undeclared(what, id) => write!(f, "uses {what} {id}, which no line before it declares"),
            Self::OutOfOrder(what, id, next) => write!(f, "declares {what} {id} where {next} comes next"),
            Self::Freed(id) => write!(f, "uses storage {id} after it was freed"),
            Self::TooMuch(what) => write!(f, "has more {what} than a recording can hold"),
            Self::Strides => f.write_str("has another number of strides than of extents"),
            Self::Mark(at) => write!(f, "marks \"{at}\" where that cannot be"),
            Self::SourceLine => f.write_str("stands where no such line can"),
        }
    }
}
