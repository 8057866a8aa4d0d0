//! Where kernels run.

pub mod cuda;
#[cfg(feature = "portable")]
pub mod portable;

use vramscope_benchmark::{BenchedDevice, Implementation, Kernel, Outcome, Reading, Timer};

use crate::kernels::reference::Reader;

/// Why a kernel gives no time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It does not fit.
    OutOfMemory {
        /// Bytes that were asked for.
        needed: u64,
        /// Bytes that were free.
        free: u64,
    },
    /// It cannot run here: why, and what would make it run.
    Unsupported(String),
    /// It broke: what the driver or library said.
    Failed(String),
}

impl Refusal {
    /// As a result.
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

/// A card, through one interface.
pub trait Backend {
    /// What it is.
    fn device(&self) -> BenchedDevice;

    /// Its state now.
    fn reading(&self) -> Reading;

    /// Processes other than this one that hold it, where that can be told.
    fn other_processes(&self) -> Option<u32>;

    /// Bytes of its memory that are taken, where that can be told.
    fn taken_bytes(&self) -> Option<u64>;

    /// Whether a kernel only stands in for a library that is there: such kernels run where they are named.
    fn is_stand_in(&self, _kernel: &Kernel) -> bool {
        false
    }

    /// Makes a kernel ready to run, on inputs that are filled.
    ///
    /// # Errors
    /// See [`Refusal`].
    fn prepare(&self, kernel: &Kernel) -> Result<Box<dyn Prepared + '_>, Refusal>;
}

/// A kernel that is ready to run.
pub trait Prepared: Reader {
    /// What runs.
    fn implementation(&self) -> Implementation;

    /// Highest bytes beyond the inputs, each allocation rounded up as PyTorch's allocator does.
    fn peak_extra_bytes(&self) -> Option<u64>;

    /// What takes the times.
    fn timer(&self) -> Timer;

    /// Runs once, onto results that were filled with what is no number, and waits.
    ///
    /// # Errors
    /// What the driver or library said.
    fn run_once(&mut self) -> Result<(), Refusal>;

    /// Runs `launches` times, one after the other, and gives the nanoseconds of all.
    ///
    /// # Errors
    /// What the driver or library said.
    fn time(&mut self, launches: u32) -> Result<u64, Refusal>;
}
