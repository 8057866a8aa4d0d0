//! What is known of a run on a card, as a word and an exit code.

use schemars::JsonSchema;
use serde::Serialize;
use vramscope_engine::verdict::Verdict;

/// Outcome of a run; the worst comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It fits, with at least 5% of the room to spare.
    Fits,
    /// It may fit: less than 5% of the room stays free.
    Tight,
    /// Nothing says whether it fits.
    NotKnown,
    /// It fits the card, and takes more than the budget.
    OverBudget,
    /// It runs out of memory.
    Oom,
    /// What was given cannot be read.
    Error,
}

impl Outcome {
    /// The outcome of a verdict, which `None` leaves open.
    pub const fn of(verdict: Option<Verdict>) -> Self {
        match verdict {
            Some(Verdict::Fits) => Self::Fits,
            Some(Verdict::Tight) => Self::Tight,
            Some(Verdict::Oom) => Self::Oom,
            None => Self::NotKnown,
        }
    }

    /// Exit code of a command that ends with it. 1 and 2 are failures and bad input, as everywhere.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Fits => 0,
            Self::Error => 2,
            Self::Oom | Self::OverBudget => 3,
            Self::NotKnown => 4,
            Self::Tight => 5,
        }
    }

    /// The stable word, as in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Tight => "tight",
            Self::NotKnown => "not_known",
            Self::OverBudget => "over_budget",
            Self::Oom => "oom",
            Self::Error => "error",
        }
    }

    /// The word for people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Fits => "FITS",
            Self::Tight => "TIGHT",
            Self::NotKnown => "NOT KNOWN",
            Self::OverBudget => "OVER BUDGET",
            Self::Oom => "OOM",
            Self::Error => "ERROR",
        }
    }
}
