//! Rates of a card from its data sheet, and the shares of them that kernels reach.

use vramscope_engine::device::Device;
use vramscope_engine::dtype::DType;
use vramscope_engine::tape::SdpaBackend;
use vramscope_engine::tape::work::{Class, Launch};

/// Share of the data sheet's bandwidth that kernels reach: 750 of 900 GB/s on V100, table 3.1 of "Dissecting the NVIDIA
/// Volta GPU Architecture via Microbenchmarking" (arXiv 1804.06826).
const BANDWIDTH_SHARE: f64 = 0.833;

/// Share of the peak rate that cuBLAS reaches on large products: "80–90%" (arXiv 2307.08691, section 1).
const MATMUL_SHARE: f64 = 0.85;

/// Shares of the peak rate that FlashAttention 2 reaches forward and backward on A100: "up to 73%",
/// "up to 63%" (arXiv 2307.08691, sections 1 and 4.1).
const FLASH_SHARES: [f64; 2] = [0.73, 0.63];

/// Share of the peak rate that FlashAttention 2 reaches on Hopper, for which it was not written: "35%" (arXiv
/// 2407.08608, abstract).
const FLASH_SHARE_ON_HOPPER: f64 = 0.35;

/// Share of the peak rate that attention kernels written for Hopper reach: "up to 75%" in fp16 (arXiv 2407.08608,
/// abstract); cuDNN's are about as fast (section 4.1 there).
const HOPPER_SHARE: f64 = 0.75;

/// Hopper's generation of compute capability.
const HOPPER: u64 = 9;

/// Seconds of a nearly empty kernel that is launched without waiting: 3.8 µs ("Getting Started with CUDA Graphs",
/// NVIDIA developer blog, 2019).
pub(super) const LATENCY: f64 = 3.8e-6;

/// Rate of PCI Express 4.0 with 16 lanes, the default for a card without data (bytes per second, one direction).
const PCIE: f64 = 32e9;

/// Rates of a card, in operations and bytes per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Matrix products in 2-byte dtypes, operations per second.
    pub half: f64,
    /// Matrix products in fp32 without TF32, operations per second.
    pub single: f64,
    /// Memory bandwidth, bytes per second.
    pub bytes: f64,
    /// PCI Express between card and host in one direction, bytes per second.
    pub pcie: f64,
    /// Multiprocessors × clock, in hertz: the rate of kernels that neither products nor memory bound.
    pub(super) issue: f64,
    /// NVIDIA's generation; `None` for cards that CUDA does not drive.
    pub(super) generation: Option<u64>,
}

impl Rates {
    /// Rates of an H200, the card of the reference measurements: 989 and 67 TFLOP/s, 4.8 TB/s, PCI Express 5.0 with 16
    /// lanes (its data sheet).
    pub const REFERENCE: Self = Self {
        half: 989e12,
        single: 67e12,
        bytes: 4.8e12,
        pcie: 64e9,
        issue: 67e12 / (2.0 * 128.0),
        generation: Some(HOPPER),
    };

    /// Rates from a card's data sheet, if it states them.
    pub fn of(device: &Device) -> Option<Self> {
        let peak = |dtype| Some(device.peak(dtype)?.as_teraflops() * 1e12);
        let single = peak(DType::F32)?;
        Some(Self {
            half: peak(DType::Bf16).or_else(|| peak(DType::F16)).unwrap_or(single),
            single,
            bytes: device.bandwidth()?.as_gb_per_s() * 1e9,
            pcie: device.pcie().map_or(PCIE, |rate| rate.as_gb_per_s() * 1e9),
            issue: single / (2.0 * lanes(device)),
            generation: device.compute_capability.map(|capability| capability.major.into()),
        })
    }

    /// Peak arithmetic rate for a dtype, in operations per second.
    pub fn peak(&self, dtype: DType) -> f64 {
        if dtype.width() == 2 { self.half } else { self.single }
    }

    /// Seconds at the full rates plus the minimum latency of a kernel: the ideal time that measured ratios refer to.
    pub(super) fn ideal(&self, launch: &Launch) -> f64 {
        const SHORTEST: f64 = 2e-6;
        flops(launch) / self.peak(launch.dtype) + launch.bytes() as f64 / self.bytes + SHORTEST
    }

    /// Seconds at the data sheet's rates times the published shares that kernels reach.
    pub fn time(&self, launch: &Launch) -> f64 {
        let compute = flops(launch) / self.reached(launch);
        let memory = launch.bytes() as f64 / (self.bytes * BANDWIDTH_SHARE);
        compute.max(memory).max(LATENCY)
    }

    /// Seconds of a copy between card and host.
    pub(super) fn transfer(&self, bytes: u64) -> f64 {
        LATENCY + bytes as f64 / (self.pcie * BANDWIDTH_SHARE)
    }

    /// Operations per second that large kernels of this kind reach.
    pub(super) fn reached(&self, launch: &Launch) -> f64 {
        self.peak(launch.dtype) * self.share(launch)
    }

    /// Returns true for Hopper and what came later.
    fn is_hopper(&self) -> bool {
        // A card of which nothing is known counts as the reference.
        self.generation.unwrap_or(HOPPER) >= HOPPER
    }

    fn share(&self, launch: &Launch) -> f64 {
        match launch.class {
            Class::Attention(fused) => match fused.backend {
                _ if launch.dtype == DType::F32 => MATMUL_SHARE,
                SdpaBackend::Cudnn if self.is_hopper() => HOPPER_SHARE,
                _ if self.is_hopper() => FLASH_SHARE_ON_HOPPER,
                _ => FLASH_SHARES[usize::from(fused.backward)],
            },
            _ => MATMUL_SHARE,
        }
    }
}

/// Multiply-adds in fp32 that a multiprocessor does in one clock (CUDA C++ Programming Guide, "Arithmetic Instructions":
/// 64 up to 8.0, 128 since). Cards that CUDA does not drive count as those of today.
fn lanes(device: &Device) -> f64 {
    match device.gpu().map(|gpu| gpu.capability) {
        Some((7, _) | (8, 0)) => 64.0,
        _ => 128.0,
    }
}

/// Floating-point operations of a kernel; a multiply-add counts as two. Only matrix products count: the time of other
/// arithmetic is hidden by memory accesses.
pub fn flops(launch: &Launch) -> f64 {
    let [a, b, c, d] = launch.extents.map(|n| n as f64);
    match launch.class {
        Class::Matmul(_) => 2.0 * a * b * c * d,
        Class::Convolution => 2.0 * a * b * c,
        Class::ConvolutionBackward => 2.0 * a * b * c,
        Class::Attention(fused) => {
            // Forward has two products; backward recomputes the scores and has four more products (arXiv 2307.08691,
            // section 3.1).
            let products = if fused.backward { 5.0 } else { 2.0 };
            let pairs = if fused.causal { b * c / 2.0 } else { b * c };
            products * 2.0 * a * pairs * d
        }
        _ => 0.0,
    }
}
