//! Results of measured kernels.

use serde::{Deserialize, Serialize};

use super::kernel::Kernel;
use super::summary::Summary;
use vramscope_engine::units::Seconds;

/// One kernel at one shape, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Measurement {
    /// What was measured.
    pub kernel: Kernel,
    /// Bytes that it must read and write at least, each input and output once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Floating-point operations; a multiply-add counts two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<u64>,
    /// What ran; absent where nothing could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementation: Option<Implementation>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Implementation {
    /// `cuda` or `wgpu`.
    pub backend: String,
    /// Such as `cuBLASLt`, `cuDNN`, `driver`, or `vramscope` for a kernel of its own.
    pub library: String,
    /// The library's version, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The kernel, algorithm or engine within it, as far as the library names it.
    pub kernel: String,
    /// The type that sums are held in; absent for a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accumulator: Option<String>,
}

/// What came of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran, its result was right, and this is its time.
    Measured(Measured),
    /// It does not fit: a result, not a failure.
    OutOfMemory {
        /// Bytes that its inputs, outputs and work need.
        needed_bytes: u64,
        /// Bytes that the card had to give.
        free_bytes: u64,
    },
    /// It cannot run here.
    Unsupported {
        /// Why, and what would make it run.
        reason: String,
    },
    /// It ran and its result was wrong: no time is given.
    FailedCheck(Check),
    /// It broke.
    Failed {
        /// What the driver or library said.
        reason: String,
    },
}

/// Times and memory of a kernel that ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Measured {
    /// What took the times.
    pub timer: Timer,
    /// Launches that one sample holds; each sample is divided by it.
    pub launches_per_sample: u32,
    /// Nanoseconds of one launch, in the order in which they were taken, none left out. Empty where an
    /// older record kept only the summary.
    pub samples_ns: Vec<u64>,
    /// The samples in short; absent where only memory was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Highest bytes beyond the inputs while it ran, outputs included, each allocation rounded up as
    /// PyTorch's caching allocator does, so that both can be compared. The standing workspace of a library
    /// is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_extra_bytes: Option<u64>,
    /// How its result compares with the reference; absent where it computes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
}

/// What takes a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Timer {
    /// The card's own events or timestamps around the work.
    Device,
    /// The host's clock around the work and the wait for its end.
    Host,
    /// An older record does not say.
    Unstated,
}

/// A result against its reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Check {
    /// What it was compared with, and how the error is defined.
    pub reference: String,
    /// Values that were compared.
    pub compared: u64,
    /// The highest error. A result that is not a number is written as null, and fails.
    pub max_error: Option<f64>,
    /// The highest error that passes.
    pub tolerance: f64,
    /// Whether it passed.
    pub passed: bool,
}

impl Measurement {
    /// Times and memory, if the kernel ran and its result was correct.
    pub fn measured(&self) -> Option<&Measured> {
        match &self.outcome {
            Outcome::Measured(measured) => Some(measured),
            _ => None,
        }
    }

    /// Median time, if there is one.
    pub fn time(&self) -> Option<Seconds> {
        let summary = self.measured()?.summary.as_ref()?;
        Some(Seconds::new(summary.median_ns as f64 / 1e9))
    }

    /// Algorithm bandwidth of a collective: its size in bytes, per second of the median time.
    pub fn algorithm_bytes_per_s(&self) -> Option<f64> {
        Some(self.kernel.shape.bytes? as f64 / self.time()?.get())
    }

    /// Bus bandwidth of a collective: bytes per second over each card's link, in one direction.
    pub fn bus_bytes_per_s(&self) -> Option<f64> {
        let share = self.kernel.class.bus_share(self.kernel.shape.devices.unwrap_or(2));
        Some(self.algorithm_bytes_per_s()? * share)
    }

    /// Operations per second at the median time.
    pub fn flops_per_s(&self) -> Option<f64> {
        let flops = self.kernel.flops().filter(|flops| *flops > 0)?;
        Some(flops as f64 / self.time()?.get())
    }

    /// Bytes per second at the median time.
    pub fn bytes_per_s(&self) -> Option<f64> {
        let bytes = self.bytes.filter(|bytes| *bytes > 0)?;
        Some(bytes as f64 / self.time()?.get())
    }
}
