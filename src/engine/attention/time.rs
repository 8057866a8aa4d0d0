//! Estimated time of attention: each kernel takes the longest of its arithmetic, its memory traffic and its launch.
//! Nothing is fitted to a measurement; a measured benchmark is shown beside it.

use super::call::{Algorithm, Call, Refused};
use super::kernels::{Engine, Kernel, kernels};
use crate::device::Device;
use crate::tape::Gpu;
use crate::units::Seconds;

/// Share of the data sheet's bandwidth that kernels reach: 750 of 900 GB/s on V100, table 3.1 of
/// "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking" (arXiv 1804.06826).
pub(crate) const BANDWIDTH_SHARE: f64 = 0.833;

/// Share of the peak rate that cuBLAS reaches on large products: "80–90%" (arXiv 2307.08691, section 1).
pub(crate) const MATMUL_SHARE: f64 = 0.85;

/// Shares of the peak rate that FlashAttention 2 reaches forward and backward on A100: "up to 73%",
/// "up to 63%" (arXiv 2307.08691, sections 1 and 4.1).
const FLASH_SHARES: [f64; 2] = [0.73, 0.63];

/// Share of the peak rate on Hopper, for which FlashAttention 2 was not written: "35%" (arXiv 2407.08608, abstract).
const FLASH_SHARE_ON_HOPPER: f64 = 0.35;

/// Time of a kernel with next to no work, launched without waiting: 3.8 µs ("Getting Started with CUDA Graphs", NVIDIA
/// developer blog, 2019). PyTorch's own dispatch comes on top.
pub(crate) const LAUNCH: Seconds = Seconds::micros(3.8);

/// Resource that limits a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Arithmetic.
    Compute,
    /// Memory traffic.
    Memory,
    /// Launches.
    Launch,
}

/// A kernel and its estimated time.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelTime {
    /// The kernel.
    pub kernel: Kernel,
    /// Estimated time of all its launches.
    pub time: Seconds,
    /// Resource that limits it.
    pub bound: Bound,
}

/// The estimated time of an attention, kernel by kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Time {
    /// Sum of all kernels.
    pub total: Seconds,
    /// The kernels, in order.
    pub kernels: Vec<KernelTime>,
}

/// Estimates the time of an attention of `length` queries and keys on a card.
///
/// # Errors
/// When the call makes no sense, the card has no such kernel, or the data sheet does not state the
/// rates; or when no share of the peak is known for the algorithm.
pub fn time(call: &Call, algorithm: Algorithm, length: u64, device: &Device) -> Result<Time, Refused> {
    let gpu = device.gpu().unwrap_or_default();
    call.check(algorithm, length, &gpu)?;
    let unknown = |what: &str| Refused(format!("{what} is not known"));
    let card = Card {
        flops: device
            .peak(call.dtype)
            .ok_or_else(|| unknown(&format!("the peak rate of {} in {}", device.name, call.dtype.name())))?
            .as_teraflops()
            * 1e12,
        bytes: device
            .bandwidth()
            .ok_or_else(|| unknown(&format!("the bandwidth of {}", device.name)))?
            .as_gb_per_s()
            * 1e9,
        gpu,
    };
    let kernels = kernels(call, algorithm, length)
        .ok_or_else(|| unknown(&format!("the share of the peak that {} reaches", algorithm.name())))?;
    let kernels: Vec<KernelTime> = kernels.into_iter().map(|kernel| card.time(kernel)).collect();
    Ok(Time {
        total: kernels.iter().map(|k| k.time).sum(),
        kernels,
    })
}

/// Rates of a card, in operations and bytes a second.
struct Card {
    flops: f64,
    bytes: f64,
    gpu: Gpu,
}

impl Card {
    fn time(&self, kernel: Kernel) -> KernelTime {
        let bytes: f64 = kernel.bytes.iter().map(super::Product::value).sum();
        let compute = kernel.flops.value() / (self.flops * self.share(kernel.engine));
        let memory = bytes / (self.bytes * BANDWIDTH_SHARE);
        let launch = kernel.launches as f64 * LAUNCH.get();
        let (time, bound) = [(memory, Bound::Memory), (launch, Bound::Launch)]
            .into_iter()
            .fold((compute, Bound::Compute), |a, b| if b.0 > a.0 { b } else { a });
        KernelTime {
            kernel,
            time: Seconds::new(time),
            bound,
        }
    }

    fn share(&self, engine: Engine) -> f64 {
        let hopper = self.gpu.capability.0 >= 9;
        match engine {
            Engine::Elementwise => 1.0,
            Engine::Matmul => MATMUL_SHARE,
            Engine::FlashForward | Engine::FlashBackward if hopper => FLASH_SHARE_ON_HOPPER,
            Engine::FlashForward => FLASH_SHARES[0],
            Engine::FlashBackward => FLASH_SHARES[1],
        }
    }
}
