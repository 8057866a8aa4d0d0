//! The whole answer to one setup as a JSON document.

use serde::Serialize;
use vramscope_engine::report::{BreakdownNode, Phase, Prediction, StepBytes};
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Fit;
use vramscope_engine::{Model, Report, Setup};

use crate::output::target::Target;

/// A prediction line's figures, and what they are of and consist of.
#[derive(Serialize)]
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

#[derive(Serialize)]
struct JudgedTarget<'a> {
    name: &'a str,
    #[serde(flatten)]
    fit: &'a Fit,
}

impl<'a> Answer<'a> {
    /// The answer for a card that holds `outside` bytes outside PyTorch's allocator.
    pub fn new(
        (model, setup): (&'a Model, &'a Setup),
        report: &'a Report,
        target: Option<&'a (Target, Fit)>,
        outside: Bytes,
    ) -> Self {
        Self {
            model: &model.name,
            setup,
            target: target.map(|(target, fit)| JudgedTarget {
                name: target.name(),
                fit,
            }),
            peak_phase: report.peak_phase,
            prediction: report.prediction(outside),
            first: report.first,
            fragmentation: report.fragmentation,
            breakdown: &report.breakdown,
        }
    }
}
