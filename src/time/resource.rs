//! Resources that a step can wait for.

use serde::{Deserialize, Serialize};

/// A resource that a step can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// Data loading.
    Data,
    /// Communication between GPUs.
    Communication,
    /// The host, which issues one kernel after the other.
    Host,
    /// Arithmetic of compute-bound kernels: matrix products, attention.
    Arithmetic,
    /// Bandwidth of memory-bound kernels: elementwise operations, norms, optimizers.
    Memory,
}

impl Resource {
    /// The resources of a GPU's kernels.
    pub(super) const OF_KERNELS: [Self; 2] = [Self::Arithmetic, Self::Memory];
}
