//! The whole answer to a recording as a JSON document.

use serde::Serialize;

use super::replay::Asked;
use super::report::Played;
use super::run::About;
use crate::report::{BreakdownNode, JudgedTarget, Phase, Prediction, StepBytes};
use crate::units::Bytes;
use crate::verdict::Fit;

/// A prediction line's figures, what was recorded, and what they consist of.
#[derive(Debug, Clone, Serialize)]
pub struct Answer<'a> {
    recording: &'a About,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<JudgedTarget<'a>>,
    peak_phase: Phase,
    #[serde(flatten)]
    prediction: Prediction<'a>,
    first: StepBytes,
    fragmentation: Bytes,
    breakdown: &'a BreakdownNode,
    /// Answers to what the script asked of the allocator, in order; null for what is not followed.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    asked: &'a [Asked],
}

impl Played {
    /// The answer for a card that holds `outside` bytes outside PyTorch's allocator; `target` is what the run is held
    /// against, with its name.
    pub fn answer<'a>(&'a self, target: Option<(&'a str, &'a Fit)>, outside: Bytes) -> Answer<'a> {
        let report = &self.report;
        Answer {
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
