//! Out-of-memory errors, in every wording of PyTorch since 1.0 and of the libraries under it.

mod message;
mod site;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::amount::Amount;

pub(super) use message::find;

/// The component that failed to allocate memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asker {
    /// PyTorch's caching allocator.
    Allocator(Backend),
    /// The driver, called by something other than the caching allocator: a context, a kernel's stack, a library.
    Driver(Backend),
    /// cuBLAS, for its handle or workspace.
    Cublas,
    /// cuDNN.
    Cudnn,
    /// NCCL, for communicators and buffers.
    Nccl,
    /// The host's allocator, not the GPU's.
    Host,
}

/// Device backend of PyTorch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// NVIDIA CUDA.
    Cuda,
    /// AMD ROCm.
    Hip,
    /// Intel XPU.
    Xpu,
    /// Apple MPS.
    Mps,
}

/// Part of a step in which the request failed, found from the traceback around the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Site {
    /// Loading or moving the model.
    Load,
    /// The vision tower.
    Vision,
    /// Attention.
    Attention,
    /// Logits or the loss.
    Loss,
    /// Another part of forward.
    Forward,
    /// Backward.
    Backward,
    /// Creation of the optimizer's states in its first step.
    OptimizerStates,
    /// The optimizer's update.
    Optimizer,
}

/// Another process on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process ID.
    pub pid: u64,
    /// Memory that the process holds.
    pub holds: Amount,
}

/// Contents of one error message; fields that the message leaves out are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OomMessage {
    /// The component that failed.
    pub asker: Asker,
    /// Index of the device.
    pub device: Option<u32>,
    /// "Tried to allocate": the request to the driver, which is the tensor's size rounded up to a segment.
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
    /// "this process has … memory in use": all memory of the process, inside and outside PyTorch's allocator.
    pub own: Option<Amount>,
    /// "Process N has … memory in use".
    pub others: Vec<Process>,
    /// "allowed": the limit of `set_per_process_memory_fraction`, or of MPS.
    pub allowed: Option<Amount>,
    /// "allocated in private pools", which CUDA graphs keep for themselves.
    pub private_pools: Option<Amount>,
    /// Part of the step in which the request failed.
    pub site: Option<Site>,
    /// Number of times that the same error occurs, as with one process for each device.
    pub times: u32,
    /// All devices on which it occurs.
    pub devices: Vec<u32>,
}

impl OomMessage {
    /// The message with the fields of another reading of it where this one has none.
    fn or(self, other: Self) -> Self {
        Self {
            device: self.device.or(other.device),
            devices: if self.devices.is_empty() {
                other.devices
            } else {
                self.devices
            },
            request: self.request.or(other.request),
            total: self.total.or(other.total),
            free: self.free.or(other.free),
            allocated: self.allocated.or(other.allocated),
            reserved: self.reserved.or(other.reserved),
            unallocated: self.unallocated.or(other.unallocated),
            own: self.own.or(other.own),
            others: if self.others.is_empty() {
                other.others
            } else {
                self.others
            },
            allowed: self.allowed.or(other.allowed),
            private_pools: self.private_pools.or(other.private_pools),
            ..self
        }
    }

    /// Reserved memory, even if the message only gives it as two parts.
    pub fn reserved_in_all(&self) -> Option<Amount> {
        self.reserved.or_else(|| {
            let (allocated, rest) = (self.allocated?, self.unallocated?);
            Some(Amount {
                bytes: allocated.bytes + rest.bytes,
                error: allocated.error + rest.error,
            })
        })
    }

    /// Memory that PyTorch reserves and no tensor holds.
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
