//! Results of a simulation: peaks, breakdown, timeline and warnings. Frontends draw them and compute nothing.

mod answer;
mod around;
mod block_bytes;
mod breakdown;
pub mod compiled;
pub mod derivation;
mod describe;
pub mod difference;
mod footprint;
mod live;
pub mod outside;
mod prediction;
mod reserved;
mod timeline;
pub mod verdict;

pub use answer::EstimateDocument;
pub(crate) use answer::JudgedTarget;
pub use around::{Around, AroundDocument, HostBytes, HostRoom, HostStage, HostUse, Occasion, OnCard, OnHost};
pub(crate) use block_bytes::BlockBytes;
pub use breakdown::{Breakdown, BreakdownNode};
pub use difference::Difference;
pub use footprint::Part;
pub use live::{Held, Live};
pub use prediction::Prediction;
pub use reserved::{Reserved, SegmentLayout};
pub(crate) use timeline::Recorded;
pub use timeline::{Instant, LiveTensor, Timeline};

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::tape::dims::Dims;
use crate::tape::{Component, Kind};
use crate::units::Bytes;

/// The parts of one training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// From the inputs to the loss.
    Forward,
    /// From the loss to the gradients.
    Backward,
    /// Clipping, the optimizer's update and `zero_grad`.
    Optimizer,
}

impl Phase {
    /// English name.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Optimizer => "optimizer",
        }
    }
}

/// Allocated bytes at the marks of one step, as `truth` measures them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StepBytes {
    /// Inputs on the GPU, forward not begun (of the last micro-batch).
    pub before_forward: Bytes,
    /// The loss and all that backward needs.
    pub after_forward: Bytes,
    /// Highest within forward.
    pub peak_forward: Bytes,
    /// Gradients in place.
    pub after_backward: Bytes,
    /// Highest within backward.
    pub peak_backward: Bytes,
    /// Highest within clipping and the optimizer's update.
    pub peak_optimizer: Bytes,
    /// After `zero_grad(set_to_none=True)`.
    pub end: Bytes,
}

impl StepBytes {
    /// The highest of the three phases' peaks.
    pub fn peak(&self) -> Bytes {
        self.peak_forward.max(self.peak_backward).max(self.peak_optimizer)
    }

    /// The highest of each phase, in order.
    pub fn by_phase(&self) -> [(Phase, Bytes); 3] {
        [
            (Phase::Forward, self.peak_forward),
            (Phase::Backward, self.peak_backward),
            (Phase::Optimizer, self.peak_optimizer),
        ]
    }

    /// The highest instant of one phase.
    pub const fn peak_of(&self, phase: Phase) -> Bytes {
        match phase {
            Phase::Forward => self.peak_forward,
            Phase::Backward => self.peak_backward,
            Phase::Optimizer => self.peak_optimizer,
        }
    }

    /// The phase that holds the peak; the first of equals.
    pub fn peak_phase(&self) -> Phase {
        let peak = self.peak();
        if self.peak_forward == peak {
            Phase::Forward
        } else if self.peak_backward == peak {
            Phase::Backward
        } else {
            Phase::Optimizer
        }
    }
}

/// Importance of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Likely to surprise.
    Warning,
}

/// Something the person should know, with what to do next.
///
/// `code` is stable (frontends translate by it); `args` are the numbers and names to put in; `message` is the English
/// text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable identifier, such as `peak-in-optimizer`.
    pub code: Cow<'static, str>,
    /// Importance of the warning.
    pub severity: Severity,
    /// English text that ends in the next step.
    pub message: String,
    /// Values for translated texts.
    pub args: Vec<(Cow<'static, str>, String)>,
}

/// Kinds of GPU memory outside PyTorch's allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outside {
    /// State and stacks that the driver keeps for a process.
    CudaContext,
    /// Code of the kernels that were used.
    CudaKernels,
    /// The desktop, if the card drives a display.
    Display,
    /// Communicators and buffers between GPUs.
    Nccl,
    /// vLLM in the same process: its weights, its cache of keys and values, its own activations.
    Vllm,
}

impl Outside {
    /// The stable name, such as `cuda-context`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CudaContext => "cuda-context",
            Self::CudaKernels => "cuda-kernels",
            Self::Display => "display",
            Self::Nccl => "nccl",
            Self::Vllm => "vllm",
        }
    }
}

/// One named part of what the GPU holds outside PyTorch's allocator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideTerm {
    /// Kind of memory.
    pub name: Outside,
    /// Expected bytes.
    pub bytes: Bytes,
    /// Lowest and highest seen or documented.
    pub range: [Bytes; 2],
    /// Measurement or document that the figure comes from.
    pub source: Cow<'static, str>,
}

/// Memory that evaluation or generation holds at the end.
#[derive(Debug, Clone)]
pub struct Outputs {
    /// The last instant at which the outputs are held.
    pub held: Instant,
    /// Shapes and types of the keys and values of all blocks then; none of an evaluation that keeps none.
    pub cache: Vec<(Dims, DType)>,
}

/// The result of one simulation.
#[derive(Debug, Clone)]
pub struct Report {
    /// Parameters of the model (elements).
    pub params: u64,
    /// Parameters that are trained (elements).
    pub trainable: u64,
    /// Allocated bytes once the model is made.
    pub after_model: Bytes,
    /// The first step, in which optimizer states appear.
    pub first: StepBytes,
    /// The third step, which every step after it repeats.
    pub steady: StepBytes,
    /// Highest allocated bytes of the steady step.
    pub peak_allocated: Bytes,
    /// Highest reserved bytes over the run's three steps, of the layout of segments that reserves most:
    /// a plan must hold in every process.
    pub peak_reserved: Bytes,
    /// Highest reserved bytes by layout of segments.
    pub reserved: Vec<Reserved>,
    /// Reserved bytes that no tensor holds at the instant of the steady peak.
    pub fragmentation: Bytes,
    /// Optimizer states that are paged: in managed memory, which CUDA moves between host and device
    /// outside PyTorch's allocator.
    pub paged: Bytes,
    /// The phase that holds the steady peak.
    pub peak_phase: Phase,
    /// Bytes live at the steady peak: component → kind → layer → tensor.
    pub breakdown: Breakdown,
    /// Every allocation and free of the steady step.
    pub timeline: Timeline,
    /// Memory that a model which does not train holds at the end; `None` for training.
    pub outputs: Option<Outputs>,
    /// True if the model runs compiled: all figures are then those of the same run in eager mode.
    pub is_compiled: bool,
    /// Warnings, each with the next step to take.
    pub warnings: Vec<Warning>,
}

impl Report {
    /// Bytes of one component and kind that live when forward ends.
    pub fn held_after_forward(&self, component: Component, kind: Kind) -> Bytes {
        let end = self
            .timeline
            .phases()
            .iter()
            .find(|(phase, _)| *phase == Phase::Backward)
            .map_or(0, |(_, at)| *at);
        self.timeline
            .live(end)
            .sum(|held| held.component == component && held.kind() == kind)
    }

    /// Live bytes at the steady peak, by kind.
    pub fn by_kind(&self) -> Vec<(Kind, Bytes)> {
        self.timeline.at(self.timeline.peak_instant()).to_vec()
    }
}
