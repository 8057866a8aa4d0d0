//! Backends that run kernels, and the interface that they share.

pub mod cuda;
#[cfg(feature = "portable")]
pub mod portable;

use vramscope_benchmark::{BenchedDevice, Implementation, Kernel, Outcome, Reading, Timer};

use crate::kernels::reference::Reader;

/// Reason why a kernel has no time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The kernel does not fit into memory.
    OutOfMemory {
        /// Bytes requested.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// The kernel cannot run here; the text says why, and what would make it run.
    Unsupported(String),
    /// The kernel failed; the text is the driver's or library's message.
    Failed(String),
}

impl Refusal {
    /// Converts to the outcome in a record.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::OutOfMemory { needed, free } => Outcome::OutOfMemory {
                needed_bytes: needed,
                free_bytes: free,
            },
            Self::Unsupported(reason) => Outcome::Unsupported { reason },
            Self::Failed(reason) => Outcome::Failed { reason },
        }
    }
}

impl From<Refusal> for String {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::OutOfMemory { needed, free } => format!("{needed} bytes needed, {free} free"),
            Refusal::Unsupported(reason) | Refusal::Failed(reason) => reason,
        }
    }
}

/// A card that can run kernels.
pub trait Backend {
    /// Description of the card.
    fn device(&self) -> BenchedDevice;

    /// Current state of the card.
    fn reading(&self) -> Reading;

    /// Number of other processes that use the card, if that can be determined.
    fn other_processes(&self) -> Option<u32>;

    /// Bytes of the card's memory in use, if that can be determined.
    fn taken_bytes(&self) -> Option<u64>;

    /// Returns true if a kernel only substitutes for an available library; such kernels run only when named.
    fn is_stand_in(&self, _kernel: &Kernel) -> bool {
        false
    }

    /// Prepares a kernel, with filled inputs.
    ///
    /// # Errors
    /// See [`Refusal`].
    fn prepare(&self, kernel: &Kernel) -> Result<Box<dyn Prepared + '_>, Refusal>;
}

/// A kernel that is ready to run.
pub trait Prepared: Reader {
    /// The implementation that runs.
    fn implementation(&self) -> Implementation;

    /// Peak bytes beyond the inputs, each allocation rounded up as PyTorch's allocator does.
    fn peak_extra_bytes(&self) -> Option<u64>;

    /// The clock that measures the times.
    fn timer(&self) -> Timer;

    /// Runs once, with results filled with NaN beforehand, and waits.
    ///
    /// # Errors
    /// The driver's or library's message.
    fn run_once(&mut self) -> Result<(), Refusal>;

    /// Runs `launches` times back to back and returns the total nanoseconds.
    ///
    /// # Errors
    /// The driver's or library's message.
    fn time(&mut self, launches: u32) -> Result<u64, Refusal>;
}
