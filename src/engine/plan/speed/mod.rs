//! How long a step takes on a card, estimated from its data sheet.
//!
//! A roofline over the recorded step, with nothing fitted: products of matrices take their operations at the share of
//! the peak rate that is published for large ones, everything else the bytes that it writes and reads at the
//! bandwidth, and no kernel less than its launch. It tells which of two setups is faster and about how much, not
//! milliseconds: kernels of small shapes, waiting and data loading are not in it.

mod work;

use crate::attention::{BANDWIDTH_SHARE, LAUNCH, MATMUL_SHARE};
use crate::device::Device;
use crate::dtype::DType;
use crate::simulate::Recording;
use crate::units::Seconds;

use self::work::{Work, work};

/// Estimated time of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepTime {
    /// Forward and backward of one micro-batch.
    pub pass: Seconds,
    /// The optimizer's update.
    pub update: Seconds,
}

impl StepTime {
    /// A step of so many micro-batches.
    pub fn of_step(&self, micro_batches: u64) -> Seconds {
        Seconds::new(self.pass.get() * micro_batches as f64 + self.update.get())
    }
}

/// The time of the last micro-batch and of the update of a recorded run; nothing where the card's data sheet states
/// neither rate nor bandwidth.
pub fn step(recording: &Recording, device: &Device) -> Option<StepTime> {
    let card = Card {
        half: device
            .peak(DType::Bf16)
            .or_else(|| device.peak(DType::F16))?
            .as_teraflops()
            * 1e12,
        full: device.peak(DType::F32)?.as_teraflops() * 1e12,
        bytes: device.bandwidth()?.as_gb_per_s() * 1e9,
    };
    let [pass, update] = work(recording);
    Some(StepTime {
        pass: card.time(&pass),
        update: card.time(&update),
    })
}

/// Rates in operations and bytes a second.
struct Card {
    half: f64,
    full: f64,
    bytes: f64,
}

impl Card {
    fn time(&self, work: &Work) -> Seconds {
        let compute = work.half / (self.half * MATMUL_SHARE) + work.full / (self.full * MATMUL_SHARE);
        let memory = work.bytes / (self.bytes * BANDWIDTH_SHARE);
        let launches = work.kernels as f64 * LAUNCH.get();
        Seconds::new((compute + memory).max(launches))
    }
}
