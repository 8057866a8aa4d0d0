//! CUDA backend for NVIDIA GPUs. It looks for its libraries at run time, so the program builds and starts without them.

#![allow(unsafe_code, reason = "calls NVIDIA's libraries")]

mod api;
mod attention;
mod collective;
mod compile;
mod cudnn;
mod device;
mod found;
mod gemm;
mod gradients;
mod host_copy;
mod job;
mod libraries;
mod lists;
mod memory;
mod nvml;
mod own;
mod peer;
mod sdpa;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use vramscope_benchmark::{BenchedDevice, Class, Implementation, Kernel, Library, Pass, Precision, Reading};
use vramscope_engine::attention::Algorithm;

use self::compile::{Function, Module, Source};
use self::device::{Card, Facts};
pub use self::found::{Sighting, find};
use self::gemm::Lt;
use self::libraries::{CUBLASLT, CUDNN, NVML, NVRTC};
use self::nvml::Monitor;
use super::{Backend, Prepared, Refusal};

/// An NVIDIA card, ready to measure.
pub struct Cuda {
    card: Rc<Card>,
    facts: Facts,
    monitor: Option<Monitor>,
    nvrtc: Result<api::Nvrtc, String>,
    lt: Result<Rc<Lt>, String>,
    cudnn: Result<Rc<cudnn::Library>, String>,
    nccl: Result<Rc<collective::Library>, String>,
    /// Cards after the first, opened when a kernel first needs several.
    others: RefCell<Vec<Rc<Card>>>,
    versions: BTreeMap<&'static str, String>,
    modules: RefCell<BTreeMap<(Source, Precision), Rc<Module>>>,
    taken: u64,
}

impl Cuda {
    /// One of our own kernels, compiled when its source is first used.
    fn function(&self, source: Source, precision: Precision, name: &str) -> Result<Function, Refusal> {
        // TF32 is stored as fp32.
        let precision = if precision == Precision::Tf32 {
            Precision::Fp32
        } else {
            precision
        };
        if let Some(module) = self.modules.borrow().get(&(source, precision)) {
            return module.function(name);
        }
        let nvrtc = self.nvrtc.as_ref().map_err(|why| missing(NVRTC.name, why))?;
        let module = Module::compile(nvrtc, &self.card, source, precision, self.facts.capability)?;
        let module = Rc::new(module);
        self.modules
            .borrow_mut()
            .insert((source, precision), Rc::clone(&module));
        module.function(name)
    }

    fn lt(&self) -> Result<&Rc<Lt>, Refusal> {
        self.lt.as_ref().map_err(|why| missing(CUBLASLT.name, why))
    }

    fn cudnn(&self) -> Result<&Rc<cudnn::Library>, Refusal> {
        self.cudnn.as_ref().map_err(|why| missing(CUDNN.name, why))
    }

    /// Opens `wanted` cards, including the first.
    ///
    /// # Errors
    /// If there are fewer, or one cannot be opened.
    fn cards(&self, wanted: u64) -> Result<Vec<Rc<Card>>, Refusal> {
        let seen = u64::from(self.facts.count);
        if seen < wanted.max(2) {
            let wanted = if wanted > 2 { wanted.to_string() } else { "two".into() };
            return Err(Refusal::Unsupported(format!(
                "needs {wanted} GPUs; this process sees {}",
                if seen == 1 { "one".into() } else { seen.to_string() }
            )));
        }
        let mut others = self.others.borrow_mut();
        while (others.len() as u64) + 1 < wanted {
            let place = others.len() as i32 + 1;
            let card = self.card.another(place);
            self.card.enter();
            others.push(card?);
        }
        let rest = others.iter().take(wanted as usize - 1);
        Ok([&self.card].into_iter().chain(rest).map(Rc::clone).collect())
    }

    /// Describes the kernel that ran, with its accumulator type if it accumulates.
    fn implementation(&self, library: &'static str, kernel: String, accumulates: bool) -> Implementation {
        Implementation {
            backend: "cuda".into(),
            library: library.into(),
            version: match library {
                "vramscope" => Some(env!("CARGO_PKG_VERSION").into()),
                _ => self.versions.get(library).cloned(),
            },
            kernel,
            accumulator: accumulates.then(|| "fp32".into()),
        }
    }

    /// Returns true if the card's tensor cores support the type: bfloat16 and TF32 since Ampere.
    fn knows(&self, precision: Precision) -> bool {
        self.facts.capability[0] >= 8 || matches!(precision, Precision::Fp32 | Precision::Fp16)
    }
}

fn missing(library: &str, why: &str) -> Refusal {
    Refusal::Unsupported(format!("{library}: {why}"))
}

/// The refusal of kernels that PyTorch alone has.
fn needs_pytorch() -> Refusal {
    Refusal::Unsupported("needs PyTorch: name the Python that your training runs in with --python PATH".into())
}

impl Backend for Cuda {
    fn device(&self) -> BenchedDevice {
        let monitor = self.monitor.as_ref();
        let [sm, memory] = monitor.map_or([None; 2], Monitor::highest_clocks);
        let [major, minor] = self.facts.capability;
        let libraries = self.versions.iter().filter(|(name, _)| **name != NVML.name);
        BenchedDevice {
            name: self.facts.name.clone(),
            backend: "cuda".into(),
            compute_capability: Some(format!("{major}.{minor}")),
            memory_bytes: Some(self.facts.memory),
            multiprocessors: Some(self.facts.multiprocessors),
            l2_bytes: Some(self.facts.l2),
            sm_clock_max_mhz: sm,
            memory_clock_max_mhz: memory,
            power_limit_w: monitor.and_then(Monitor::power_limit),
            ecc: monitor.and_then(Monitor::ecc),
            driver: monitor.and_then(Monitor::driver),
            count: Some(self.facts.count),
            libraries: libraries
                .map(|(name, version)| Library {
                    name: (*name).into(),
                    version: version.clone(),
                })
                .collect(),
        }
    }

    fn reading(&self) -> Reading {
        self.monitor.as_ref().map(Monitor::reading).unwrap_or_default()
    }

    fn other_processes(&self) -> Option<u32> {
        let all = self.monitor.as_ref().and_then(Monitor::processes)?;
        // In a container the driver may not list even this process.
        Some(all.saturating_sub(1))
    }

    fn taken_bytes(&self) -> Option<u64> {
        Some(self.taken)
    }

    fn is_stand_in(&self, kernel: &Kernel) -> bool {
        kernel.algorithm == Some(Algorithm::Flash) && self.cudnn.is_ok()
    }

    fn prepare(&self, kernel: &Kernel) -> Result<Box<dyn Prepared + '_>, Refusal> {
        let precision = kernel.precision.unwrap_or(Precision::Fp32);
        if !self.knows(precision) {
            let reason = format!("{} needs compute capability 8.0 or newer", precision.name());
            return Err(Refusal::Unsupported(reason));
        }
        match kernel.class {
            class if class.is_of_pytorch() || kernel.algorithm == Some(Algorithm::Efficient) => Err(needs_pytorch()),
            Class::Attention if kernel.algorithm == Some(Algorithm::Flash) && kernel.pass == Some(Pass::Backward) => {
                Err(needs_pytorch())
            }
            Class::HostToDevice | Class::DeviceToHost => host_copy::prepare(self, kernel),
            Class::PeerCopy => peer::prepare(self, kernel),
            class if class.is_collective() => collective::prepare(self, kernel),
            _ => job::prepare(self, kernel),
        }
    }
}
