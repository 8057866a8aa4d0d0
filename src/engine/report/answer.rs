//! Full result of one setup as a JSON document.

use serde::Serialize;

use super::{BreakdownNode, Phase, Prediction, Report, StepBytes};
use crate::units::Bytes;
use crate::verdict::Fit;
use crate::{Model, Setup};

/// Full result of one setup as a JSON document: a prediction's figures, the model and setup they belong to, and their
/// breakdown.
#[derive(Debug, Clone, Serialize)]
pub struct EstimateDocument<'a> {
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

/// A memory target by name, and the run's verdict for it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct JudgedTarget<'a> {
    name: &'a str,
    #[serde(flatten)]
    fit: &'a Fit,
}

impl<'a> JudgedTarget<'a> {
    /// Pairs a target's name with the verdict.
    pub const fn new(name: &'a str, fit: &'a Fit) -> Self {
        Self { name, fit }
    }
}

impl Report {
    /// Returns the result for a card that holds `outside` bytes outside PyTorch's allocator; `target` is the name of
    /// the memory target and the run's verdict for it.
    pub fn answer<'a>(
        &'a self,
        (model, setup): (&'a Model, &'a Setup),
        target: Option<(&'a str, &'a Fit)>,
        outside: Bytes,
    ) -> EstimateDocument<'a> {
        EstimateDocument {
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
