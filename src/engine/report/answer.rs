use serde::Serialize;

use super::{BreakdownNode, Phase, Prediction, Report, StepBytes};
use crate::units::Bytes;
use crate::verdict::Fit;
use crate::{Model, Setup};

/// The whole answer to one setup as a JSON document: a prediction line's figures, and what they are
/// of and consist of.
#[derive(Debug, Clone, Serialize)]
pub struct Answer<'a> {
    model: &'a str,
    setup: &'a Setup,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<JudgedTarget<'a>>,
    peak_phase: Phase,
    #[serde(flatten)]
    prediction: Prediction<'a>,
    first: StepBytes,
    fragmentation: Bytes,
    breakdown: &'a BreakdownNode,
}

/// What a run is held against, and how it stands.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct JudgedTarget<'a> {
    name: &'a str,
    #[serde(flatten)]
    fit: &'a Fit,
}

impl<'a> JudgedTarget<'a> {
    /// By the target's name.
    pub const fn new(name: &'a str, fit: &'a Fit) -> Self {
        Self { name, fit }
    }
}

impl Report {
    /// The answer for a card that holds `outside` bytes outside PyTorch's allocator; `target` is what
    /// the run is held against, with its name.
    pub fn answer<'a>(
        &'a self,
        (model, setup): (&'a Model, &'a Setup),
        target: Option<(&'a str, &'a Fit)>,
        outside: Bytes,
    ) -> Answer<'a> {
        Answer {
            model: &model.name,
            setup,
            target: target.map(|(name, fit)| JudgedTarget::new(name, fit)),
            peak_phase: self.peak_phase,
            prediction: self.prediction(outside),
            first: self.first,
            fragmentation: self.fragmentation,
            breakdown: &self.breakdown,
        }
    }
}
