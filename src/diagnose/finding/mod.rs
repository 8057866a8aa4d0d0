//! What the evidence means.

mod capacity;
mod cause;
mod checks;
mod context;
mod counters;
mod evidence;
mod growth;
mod profile;
mod shapes;
mod snapshot;
mod steps;
#[cfg(test)]
mod tests;
mod usage;
pub mod words;

use serde::{Deserialize, Serialize};

pub use cause::{AttentionShape, Cause, Growth, Holder, LogitsShape};
pub use checks::{Check, checks};
pub use context::{Context, Fix, Fixes};
pub use steps::Step;

use super::{Evidence, Piece};

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The numbers show it.
    Cause,
    /// The numbers point to it.
    Likely,
    /// The numbers allow it.
    Possible,
    /// Worth knowing, whatever the cause.
    Note,
    /// The numbers speak against it.
    RuledOut,
}

impl Standing {
    /// English words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Cause => "cause",
            Self::Likely => "likely",
            Self::Possible => "possible",
            Self::Note => "note",
            Self::RuledOut => "ruled out",
        }
    }
}

/// One conclusion, with its numbers and what to do next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// How sure it is.
    pub standing: Standing,
    /// What it is, with the numbers that show it.
    pub cause: Cause,
    /// What to do, the first first.
    pub steps: Vec<Step>,
}

impl Finding {
    fn new(standing: Standing, cause: Cause, steps: &[Step]) -> Self {
        Self {
            standing,
            cause,
            steps: steps.to_vec(),
        }
    }

    /// The course's row that explains it.
    pub const fn row(&self) -> &'static str {
        self.cause.row()
    }
}

/// Everything that the evidence shows, the surest first; of equals, what comes first in the evidence.
pub fn diagnose(pieces: &[Piece], context: &Context) -> Vec<Finding> {
    let all: Vec<&Evidence> = pieces.iter().map(|piece| &piece.evidence).collect();
    let capacity = context.capacity.or_else(|| evidence::capacity(&all));
    let mut findings = Vec::new();
    for one in &all {
        match one {
            Evidence::Oom(message) => findings.extend(capacity::findings(message, context)),
            Evidence::Counters(counters) => findings.extend(counters::findings(counters)),
            Evidence::Smi(smi) => findings.extend(usage::findings(smi)),
            Evidence::Log(log) => findings.extend(growth::findings(log, capacity.or(log.total))),
            Evidence::Profile(profile) => findings.extend(profile::findings(profile, capacity)),
            Evidence::Snapshot(summary) => findings.extend(snapshot::findings(summary, capacity, context)),
        }
    }
    evidence::reconcile(&mut findings);
    findings.sort_by_key(|finding| finding.standing);
    findings
}
