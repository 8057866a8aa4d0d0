//! GPUs as their data sheets describe them: the files of `cards/`, with sources, which the build script turns into
//! constants. Unknown figures are absent, never guessed.

mod lookup;

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::tape::Gpu;
use crate::units::{Bandwidth, Bytes, FlopRate};
pub use lookup::{DeviceError, Found};

/// The maker of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// NVIDIA, driven by CUDA.
    Nvidia,
    /// AMD, driven by ROCm.
    Amd,
    /// Apple, driven by Metal.
    Apple,
}

impl Vendor {
    /// Name of the maker.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nvidia => "NVIDIA",
            Self::Amd => "AMD",
            Self::Apple => "Apple",
        }
    }

    /// Returns true if CUDA drives the maker's cards. Steps on others are simulated as CUDA would run them, and none was
    /// measured.
    pub const fn is_driven_by_cuda(self) -> bool {
        matches!(self, Self::Nvidia)
    }
}

/// Market segment of a device, which decides if a display takes a share of its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A gaming card: usually drives the display too.
    Consumer,
    /// A professional card: may drive a display.
    Workstation,
    /// A server card without display outputs.
    Datacentre,
    /// Part of a system on a chip: shares the machine's memory.
    Soc,
}

impl DeviceKind {
    /// Returns true if a display may take a share of the memory.
    pub const fn may_drive_display(self) -> bool {
        matches!(self, Self::Consumer | Self::Workstation)
    }
}

/// Memory that a process could see, as measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible {
    /// Total that `cudaMemGetInfo` reports.
    pub bytes: Bytes,
    /// Source of the measurement.
    pub source: &'static str,
}

/// NVIDIA's compute capability, such as 9.0 for Hopper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComputeCapability {
    /// Generation.
    pub major: u8,
    /// Variant of the generation.
    pub minor: u8,
}

/// Highest dense rates in 10¹² operations a second, by number format.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PeakTeraflops {
    /// fp32 outside tensor cores.
    pub fp32: Option<f64>,
    /// TF32 in tensor cores.
    pub tf32: Option<f64>,
    /// bf16 in tensor cores, accumulated in fp32.
    pub bf16: Option<f64>,
    /// fp16 in tensor cores, accumulated in fp32.
    pub fp16: Option<f64>,
    /// fp8 in tensor cores, accumulated in fp32.
    pub fp8: Option<f64>,
}

/// One card.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// Name in menus, such as `RTX 4090`.
    pub name: &'static str,
    /// Other names: what the driver reports, and short forms.
    pub aliases: &'static [&'static str],
    /// Name of a family whose most common board this is, so that the family's name alone means this card. Of Apple's
    /// chips, the one with the memory that is sold without an upgrade.
    pub stands_for: Option<&'static str>,
    /// Maker.
    pub vendor: Vendor,
    /// Market segment.
    pub kind: DeviceKind,
    memory_gib: u64,
    driver_total_mib: Option<u64>,
    /// Memory that a process could see, if it was measured.
    pub visible: Option<Visible>,
    /// NVIDIA's compute capability.
    pub compute_capability: Option<ComputeCapability>,
    /// Streaming multiprocessors or compute units.
    pub multiprocessors: Option<u64>,
    l2_mib: Option<u64>,
    bandwidth_gb_s: Option<f64>,
    /// Highest dense rates.
    pub peak_tflops: PeakTeraflops,
    pcie_gb_s: Option<f64>,
    link_gb_s: Option<f64>,
    /// Most that the board draws, in watts; of a range that the maker allows, its upper end.
    pub board_watts: Option<u64>,
    /// The vendor's document that states these figures.
    pub source: &'static str,
}

/// Name of the card of the reference measurements, used if a figure needs a card and none is named.
pub const REFERENCE: &str = "H200";

/// All cards, in the order in which a menu should show them: by maker and kind, then by age.
const ALL: &[Device] = include!(concat!(env!("OUT_DIR"), "/cards.rs"));

impl Device {
    /// All cards, in the order in which a menu should show them: by maker and kind, then by age.
    pub const fn all() -> &'static [Self] {
        ALL
    }

    /// Returns true if it computes in bf16, as NVIDIA's cards do since Ampere; `None` if its capability is not known.
    pub fn has_bf16(&self) -> Option<bool> {
        self.compute_capability.map(|capability| capability.major >= 8)
    }

    /// Properties that the simulation needs; `None` if a figure is missing or CUDA does not drive the card.
    pub fn gpu(&self) -> Option<Gpu> {
        let capability = self.compute_capability?;
        Some(Gpu {
            sms: self.multiprocessors?,
            threads_per_sm: capability.max_threads_per_multiprocessor(),
            capability: (capability.major.into(), capability.minor.into()),
        })
    }

    /// Returns true if `driver` is one of the card's names.
    pub fn is_called(&self, driver: &str) -> bool {
        self.name == driver || self.aliases.contains(&driver)
    }

    /// Advertised memory. Data sheets say GB; the driver's totals show that they mean 2³⁰ bytes.
    pub fn memory(&self) -> Bytes {
        Bytes::gib(self.memory_gib)
    }

    /// Total that `nvidia-smi` shows with drivers of 2023 or newer.
    pub fn driver_total(&self) -> Option<Bytes> {
        self.driver_total_mib.map(Bytes::mib)
    }

    /// Bytes that a process can use, CUDA context included: the measured figure if there is one, else the driver's
    /// total, else the advertised memory.
    pub fn usable(&self) -> Bytes {
        match &self.visible {
            Some(visible) => visible.bytes,
            None => self.driver_total().unwrap_or(self.memory()).min(self.memory()),
        }
    }

    /// Last level of cache before memory (`l2CacheSize`).
    pub fn l2(&self) -> Option<Bytes> {
        self.l2_mib.map(Bytes::mib)
    }

    /// Peak memory bandwidth.
    pub fn bandwidth(&self) -> Option<Bandwidth> {
        self.bandwidth_gb_s.map(Bandwidth::gb_per_s)
    }

    /// Host link, one direction.
    pub fn pcie(&self) -> Option<Bandwidth> {
        self.pcie_gb_s.map(Bandwidth::gb_per_s)
    }

    /// Sum of all links to other cards (NVLink, Infinity Fabric), one direction: half of the figure on data sheets.
    pub fn link(&self) -> Option<Bandwidth> {
        self.link_gb_s.map(Bandwidth::gb_per_s)
    }

    /// Highest dense rate of matrix products in `dtype`, without TF32.
    pub fn peak(&self, dtype: DType) -> Option<FlopRate> {
        let peak = match dtype {
            DType::F32 => self.peak_tflops.fp32,
            DType::Bf16 => self.peak_tflops.bf16,
            DType::F16 => self.peak_tflops.fp16,
            _ => None,
        };
        peak.map(FlopRate::teraflops)
    }
}

impl ComputeCapability {
    /// Resident threads of one multiprocessor.
    ///
    /// Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
    pub const fn max_threads_per_multiprocessor(self) -> u64 {
        match (self.major, self.minor) {
            (7, 5) => 1024,
            (8, 6..) | (12, _) => 1536,
            _ => 2048,
        }
    }
}

#[cfg(test)]
mod tests;
