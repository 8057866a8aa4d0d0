//! Quantities that are both measured and predicted.

use serde_json::Value;
use vramscope_engine::Report;
use vramscope_engine::device::{Device, REFERENCE};
use vramscope_engine::report::SegmentLayout;
use vramscope_engine::report::outside;
use vramscope_engine::units::Bytes;

use super::row::Measured;

/// A quantity that is both measured and predicted, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Allocated after the model is created.
    AfterModel,
    /// Allocated at the start of forward, in the steady step.
    BeforeForward,
    /// Allocated at the end of forward.
    AfterForward,
    /// Peak within forward.
    PeakForward,
    /// Allocated at the end of backward.
    AfterBackward,
    /// Peak within backward.
    PeakBackward,
    /// Peak within clipping and the optimizer.
    PeakOptimizer,
    /// Allocated at the end of the step.
    End,
    /// Peak of allocated bytes within the steady step.
    PeakAllocated,
    /// Peak of reserved bytes over the run.
    PeakReserved,
    /// Peak of reserved bytes, for a run alone in its process.
    ReservedAlone,
    /// Bytes on the GPU outside PyTorch's allocator.
    OutsideTorch,
}

impl Quantity {
    /// All quantities, in the order of a step, followed by those that decide whether it fits.
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

    /// Name in a prediction line.
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

    /// The measured value, if the row has one.
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

    /// The predicted value.
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
