//! Out-of-memory errors, in every wording of PyTorch since 1.0 and of the libraries under it.

mod message;
mod site;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::amount::Amount;

pub(super) use message::find;

/// Who failed to get memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asker {
    /// PyTorch's caching allocator.
    Allocator(Backend),
    /// The driver, asked by something else than the caching allocator: a context, a kernel's stack, a
    /// library.
    Driver(Backend),
    /// cuBLAS, for its handle or workspace.
    Cublas,
    /// cuDNN.
    Cudnn,
    /// NCCL, for communicators and buffers.
    Nccl,
    /// The host's memory, not the GPU's.
    Host,
}

/// What PyTorch runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// NVIDIA.
    Cuda,
    /// AMD.
    Hip,
    /// Intel.
    Xpu,
    /// Apple.
    Mps,
}

/// Where in a step the request came from, by the traceback around the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Site {
    /// The model was loaded or moved.
    Load,
    /// The vision tower.
    Vision,
    /// Attention.
    Attention,
    /// Logits or the loss.
    Loss,
    /// Elsewhere in forward.
    Forward,
    /// Backward.
    Backward,
    /// The optimizer makes its states, in its first step.
    OptimizerStates,
    /// The optimizer's update.
    Optimizer,
}

/// Another process on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u64,
    /// What it holds.
    pub holds: Amount,
}

/// What an error says; what it leaves out is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OomMessage {
    /// Who asked.
    pub asker: Asker,
    /// Number of the device.
    pub device: Option<u32>,
    /// "Tried to allocate": what the driver was asked for, which is the tensor rounded up to a segment.
    pub request: Option<Amount>,
    /// "total capacity".
    pub total: Option<Amount>,
    /// "free".
    pub free: Option<Amount>,
    /// "already allocated", "allocated by PyTorch".
    pub allocated: Option<Amount>,
    /// "cached", "reserved in total by PyTorch".
    pub reserved: Option<Amount>,
    /// "reserved by PyTorch but unallocated".
    pub unallocated: Option<Amount>,
    /// "this process has … memory in use": all that it holds, PyTorch's and others'.
    pub own: Option<Amount>,
    /// "Process N has … memory in use".
    pub others: Vec<Process>,
    /// "allowed": the limit of `set_per_process_memory_fraction`, or of MPS.
    pub allowed: Option<Amount>,
    /// "allocated in private pools", which CUDA graphs keep for themselves.
    pub private_pools: Option<Amount>,
    /// Where it came from.
    pub site: Option<Site>,
    /// How often the same error stands there, as with one process for each device.
    pub times: u32,
}

impl OomMessage {
    /// What PyTorch keeps in whole, also where the message gives it in two parts.
    pub fn reserved_in_all(&self) -> Option<Amount> {
        self.reserved.or_else(|| {
            let (allocated, rest) = (self.allocated?, self.unallocated?);
            Some(Amount {
                bytes: allocated.bytes + rest.bytes,
                error: allocated.error + rest.error,
            })
        })
    }

    /// What PyTorch keeps and no tensor holds.
    pub fn unallocated_in_all(&self) -> Option<Amount> {
        self.unallocated.or_else(|| {
            let (reserved, allocated) = (self.reserved?, self.allocated?);
            Some(Amount {
                bytes: reserved.bytes.saturating_sub(allocated.bytes),
                error: reserved.error + allocated.error,
            })
        })
    }
}
