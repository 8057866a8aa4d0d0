//! Formulas and the meaning of their numbers.

use serde::{Deserialize, Serialize};

use super::Quantity;
use crate::dtype::DType;
use crate::tape::Kind;
use crate::units::Bytes;

/// Meaning of a number in a formula. Frontends have the words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Term {
    /// A number with a derivation of its own.
    Of(Quantity),
    /// Live tensors of one kind.
    Live(Kind),
    /// The extent of a tensor in one dimension.
    Extent,
    /// Bytes of one element.
    Width(DType),
    /// Weights in one byte, for weights of which two are packed in a byte.
    PerByte,
    /// Number of equal tensors.
    Alike,
    /// Bytes requested from the allocator.
    Asked,
    /// Bytes of an unsplit block beyond the request.
    Slack,
    /// Weights by this name, such as `q_proj.weight`.
    Weights(String),
    /// Segments of one size.
    Segments,
    /// Bytes of one segment.
    Segment,
    /// Multiprocessors of the card.
    Multiprocessors,
    /// Threads that one multiprocessor can hold.
    Threads,
    /// Bytes that the driver keeps for each thread.
    PerThread,
    /// An amount that was measured or seen.
    Seen,
    /// An amount that a data sheet states.
    Stated,
    /// Limit on the allocator's reserved bytes, as entered.
    Limit,
    /// Samples of a micro-batch.
    Samples,
    /// Positions of one sample.
    Positions,
    /// Images of one sample.
    Images,
    /// Positions that one image takes.
    TokensPerImage,
}

/// A formula with its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Formula {
    /// One number.
    Number(Term, u64),
    /// Sum of these.
    Sum(Vec<Formula>),
    /// Product of these.
    Product(Vec<Formula>),
    /// The first minus the second.
    Difference(Box<[Formula; 2]>),
    /// The highest of these.
    Highest(Vec<Formula>),
    /// Rounded up to the next multiple of this.
    RoundedUp(Box<Formula>, u64),
}

impl Formula {
    /// Value of the formula.
    pub fn value(&self) -> u64 {
        match self {
            Self::Number(_, n) => *n,
            Self::Sum(parts) => parts.iter().map(Self::value).sum(),
            Self::Product(parts) => parts.iter().map(Self::value).product(),
            Self::Difference(of) => of[0].value() - of[1].value(),
            Self::Highest(parts) => parts.iter().map(Self::value).max().unwrap_or(0),
            Self::RoundedUp(of, to) => of.value().next_multiple_of(*to),
        }
    }

    /// Makes a number with a derivation of its own.
    pub(super) fn of(quantity: Quantity, bytes: Bytes) -> Self {
        Self::Number(Term::Of(quantity), bytes.get())
    }
}
