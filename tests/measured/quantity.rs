use serde_json::Value;
use vramscope_engine::Report;
use vramscope_engine::device::{Device, REFERENCE};
use vramscope_engine::report::SegmentLayout;
use vramscope_engine::report::outside;
use vramscope_engine::units::Bytes;

use super::row::Measured;

/// A figure that is both measured and predicted, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Allocated once the model is made.
    AfterModel,
    /// Allocated when forward begins, in the steady step.
    BeforeForward,
    /// Allocated when forward ends.
    AfterForward,
    /// Highest within forward.
    PeakForward,
    /// Allocated when backward ends.
    AfterBackward,
    /// Highest within backward.
    PeakBackward,
    /// Highest within clipping and the optimizer.
    PeakOptimizer,
    /// Allocated when the step ends.
    End,
    /// Highest allocated within the steady step.
    PeakAllocated,
    /// Highest reserved over the run.
    PeakReserved,
    /// The same, of a run that was alone in its process.
    ReservedAlone,
    /// Held by the GPU outside PyTorch's allocator.
    OutsideTorch,
}

impl Quantity {
    /// All, in the order of a step and then of what decides whether it fits.
    pub const ALL: [Self; 12] = [
        Self::AfterModel,
        Self::BeforeForward,
        Self::AfterForward,
        Self::PeakForward,
        Self::AfterBackward,
        Self::PeakBackward,
        Self::PeakOptimizer,
        Self::End,
        Self::PeakAllocated,
        Self::PeakReserved,
        Self::ReservedAlone,
        Self::OutsideTorch,
    ];

    /// The seven marks of the steady step.
    pub const PHASES: [Self; 7] = [
        Self::BeforeForward,
        Self::AfterForward,
        Self::PeakForward,
        Self::AfterBackward,
        Self::PeakBackward,
        Self::PeakOptimizer,
        Self::End,
    ];

    /// The name that a prediction line gives it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AfterModel => "after_model",
            Self::BeforeForward => "before_forward",
            Self::AfterForward => "after_forward",
            Self::PeakForward => "peak_forward",
            Self::AfterBackward => "after_backward",
            Self::PeakBackward => "peak_backward",
            Self::PeakOptimizer => "peak_optimizer",
            Self::End => "end",
            Self::PeakAllocated => "peak_allocated",
            Self::PeakReserved => "peak_reserved",
            Self::ReservedAlone => "reserved, fresh process",
            Self::OutsideTorch => "outside_torch",
        }
    }

    /// What was measured, where the row holds it.
    pub fn measured(self, measured: &Measured) -> Option<Bytes> {
        let Measured::Trained(row) = measured else { return None };
        let value = match self {
            Self::AfterModel | Self::OutsideTorch => row.get(self.name()),
            Self::PeakAllocated => row.get("peak_steady"),
            Self::PeakReserved => row.get("reserved_peak"),
            Self::ReservedAlone => row.get("process").and_then(|_| row.get("reserved_peak")),
            phase => row.get("steady").and_then(|steady| steady.get(phase.name())),
        };
        value.and_then(Value::as_u64).filter(|&bytes| bytes > 0).map(Bytes::new)
    }

    /// What the engine says.
    pub fn predicted(self, report: &Report) -> Bytes {
        let steady = &report.steady;
        match self {
            Self::AfterModel => report.after_model,
            Self::BeforeForward => steady.before_forward,
            Self::AfterForward => steady.after_forward,
            Self::PeakForward => steady.peak_forward,
            Self::AfterBackward => steady.after_backward,
            Self::PeakBackward => steady.peak_backward,
            Self::PeakOptimizer => steady.peak_optimizer,
            Self::End => steady.end,
            Self::PeakAllocated => report.peak_allocated,
            Self::PeakReserved => report.peak_reserved,
            Self::ReservedAlone => {
                let mut layouts = report.reserved.iter();
                let fresh = layouts.find(|reserved| reserved.layout == SegmentLayout::FreshProcess);
                fresh.expect("every report has it").bytes
            }
            Self::OutsideTorch => outside::total(Device::by_name(REFERENCE).expect("a card")),
        }
    }
}
