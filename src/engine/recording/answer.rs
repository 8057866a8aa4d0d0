//! The whole answer to a recording as a JSON document.

use serde::Serialize;

use super::replay::Asked;
use super::report::Played;
use super::run::About;
use crate::report::{BreakdownNode, JudgedTarget, Phase, Prediction, StepBytes};
use crate::units::Bytes;
use crate::verdict::Fit;

/// A prediction's figures, the recorded run, and the breakdown of its memory, for JSON output.
#[derive(Debug, Clone, Serialize)]
pub struct RecordedDocument<'a> {
    recording: &'a About,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<JudgedTarget<'a>>,
    peak_phase: Phase,
    #[serde(flatten)]
    prediction: Prediction<'a>,
    first: StepBytes,
    fragmentation: Bytes,
    breakdown: &'a BreakdownNode,
    /// Answers to the script's questions to the allocator, in order; null for questions that are not supported.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    asked: &'a [Asked],
}

impl Played {
    /// Builds the answer for a card that holds `outside` bytes outside PyTorch's allocator; `target` names the memory
    /// limit and says whether the run fits.
    pub fn answer<'a>(&'a self, target: Option<(&'a str, &'a Fit)>, outside: Bytes) -> RecordedDocument<'a> {
        let report = &self.report;
        RecordedDocument {
            recording: &self.about,
            target: target.map(|(name, fit)| JudgedTarget::new(name, fit)),
            peak_phase: report.peak_phase,
            prediction: report.prediction(outside),
            first: report.first,
            fragmentation: report.fragmentation,
            breakdown: &report.breakdown,
            asked: &self.asked,
        }
    }
}
