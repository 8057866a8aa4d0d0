//! Faults of a line.

use std::fmt;

/// Fault of a line, worded as the end of a sentence about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is no JSON object of the form that its type has.
    Json(String),
    /// It uses an id that no line before declares.
    Undeclared(&'static str, u64),
    /// It declares another id than the next.
    OutOfOrder(&'static str, u64, u64),
    /// It uses or frees memory that was freed.
    Freed(u64),
    /// It holds more than can be.
    TooMuch(&'static str),
    /// It has strides for another number of dimensions.
    Strides,
    /// It ends a step, or a phase, that did not begin.
    Mark(String),
    /// It comes after `end`, or is a second header.
    Place,
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
            Self::Place => f.write_str("stands where no such line can"),
        }
    }
}
