//! Draws conclusions from the evidence.

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
pub use steps::Action;

use super::{Evidence, Piece};

/// Confidence in a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The numbers show it.
    Cause,
    /// The numbers suggest it.
    Likely,
    /// The numbers are consistent with it.
    Possible,
    /// Worth knowing, regardless of the cause.
    Note,
    /// The numbers contradict it.
    RuledOut,
}

impl Confidence {
    /// English name of this confidence.
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

/// One conclusion, with its numbers and the recommended actions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Confidence in the finding.
    #[serde(rename = "standing")]
    pub confidence: Confidence,
    /// The cause, with the numbers that support it.
    pub cause: Cause,
    /// Recommended actions, the most important first.
    pub steps: Vec<Action>,
}

impl Finding {
    fn new(confidence: Confidence, cause: Cause, steps: &[Action]) -> Self {
        Self {
            confidence,
            cause,
            steps: steps.to_vec(),
        }
    }

    /// Identifier of the course row that explains this finding.
    pub const fn row(&self) -> &'static str {
        self.cause.row()
    }
}

/// Returns every finding that the evidence supports, the most certain first; ties keep the order of the evidence.
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
    findings.sort_by_key(|finding| finding.confidence);
    findings
}
