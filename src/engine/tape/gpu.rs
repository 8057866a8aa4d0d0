//! Properties of a GPU on which sizes of temporaries depend.

/// Size and compute capability of a GPU: what kernels choose their temporaries by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gpu {
    /// Streaming multiprocessors.
    pub sms: u64,
    /// Most resident threads of one multiprocessor.
    pub threads_per_sm: u64,
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
}

impl Gpu {
    /// NVIDIA H200 (and H100 SXM), by `cudaGetDeviceProperties`.
    pub const H200: Self = Self {
        sms: 132,
        threads_per_sm: 2048,
        capability: (9, 0),
    };
}

impl Default for Gpu {
    fn default() -> Self {
        Self::H200
    }
}
