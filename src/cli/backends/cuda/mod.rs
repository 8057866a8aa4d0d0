//! NVIDIA GPUs, by libraries that are looked for when the program runs: it builds and starts without.

#![allow(unsafe_code, reason = "calls NVIDIA's libraries")]

mod api;
mod attention;
mod compile;
mod cudnn;
mod device;
mod gemm;
mod job;
mod libraries;
mod nvml;
mod sdpa;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use vramscope_engine::attention::Algorithm;
use vramscope_engine::record::{BenchedDevice, Class, Implementation, Kernel, Library, Precision, Reading};

use self::compile::{Function, Module};
use self::device::{Card, Facts};
use self::gemm::Lt;
use self::libraries::{CUBLASLT, CUDNN, DRIVER, NVML, NVRTC};
use self::nvml::Monitor;
use super::{Backend, Prepared, Refusal};

/// The oldest driver that is taken: CUDA 11.
const OLDEST_CUDA: i32 = 11_000;

/// A library that was looked for.
pub struct Sighting {
    /// Its name.
    pub name: &'static str,
    /// What it is needed for.
    pub purpose: &'static str,
    /// Its version and where it was found, or why it cannot be used.
    pub state: Result<String, String>,
}

/// What was found of NVIDIA's.
pub struct Found {
    /// Every library, in the order in which they were looked for.
    pub libraries: Vec<Sighting>,
    /// The card, or why there is none.
    pub card: Result<Cuda, String>,
}

/// An NVIDIA card, ready to measure.
pub struct Cuda {
    card: Rc<Card>,
    facts: Facts,
    monitor: Option<Monitor>,
    nvrtc: Result<api::Nvrtc, String>,
    lt: Result<Rc<Lt>, String>,
    cudnn: Result<Rc<cudnn::Library>, String>,
    versions: BTreeMap<&'static str, String>,
    modules: RefCell<BTreeMap<Precision, Rc<Module>>>,
    taken: u64,
}

/// Looks for the driver, a card and the libraries.
pub fn find() -> Found {
    let mut libraries = Vec::new();
    let card = DRIVER.open();
    let opened = card.library.and_then(api::Driver::load).and_then(|driver| {
        let card = Card::open(driver)?;
        let facts = card.facts();
        match facts.cuda < OLDEST_CUDA {
            true => Err(format!(
                "the driver is for CUDA {}.{}; 11.0 or newer is needed: update it",
                facts.cuda / 1000,
                facts.cuda % 1000 / 10
            )),
            false => Ok((card, facts)),
        }
    });
    let state = opened
        .as_ref()
        .map(|(_, f)| format!("takes CUDA up to {}.{}", f.cuda / 1000, f.cuda % 1000 / 10));
    libraries.push(Sighting {
        name: DRIVER.name,
        purpose: DRIVER.purpose,
        state: state.map_err(Clone::clone),
    });
    let (card, facts) = match opened {
        Ok(opened) => opened,
        Err(why) => {
            return Found {
                libraries,
                card: Err(why),
            };
        }
    };
    let cuda = Cuda::gather(card, facts, &mut libraries);
    Found {
        libraries,
        card: Ok(cuda),
    }
}

impl Cuda {
    fn gather(card: Rc<Card>, facts: Facts, libraries: &mut Vec<Sighting>) -> Self {
        let [free, all] = card.memory();
        let mut versions = BTreeMap::new();
        let mut see = |sought: libraries::Sought, origin: &str, state: Result<String, String>| {
            if let Ok(version) = &state {
                versions.insert(sought.name, version.clone());
            }
            libraries.push(Sighting {
                name: sought.name,
                purpose: sought.purpose,
                state: state.map(|version| format!("{version}, of {origin}")),
            });
        };
        let opened = NVML.open();
        let monitor = opened
            .library
            .and_then(api::Nvml::load)
            .and_then(|api| Monitor::open(api, &facts.bus_id).ok_or_else(|| "it does not know this card".to_owned()));
        let driver = monitor.as_ref().map(|m| m.driver().unwrap_or_default());
        see(NVML, "the driver", driver.map_err(Clone::clone));

        // The order matters: cuDNN loads NVRTC and cuBLASLt by name, and finds those opened before.
        let opened = NVRTC.open();
        let nvrtc = opened.library.and_then(api::Nvrtc::load);
        see(
            NVRTC,
            opened.origin,
            nvrtc.as_ref().map(nvrtc_version).map_err(Clone::clone),
        );

        let opened = CUBLASLT.open();
        let mut version = None;
        let lt = opened.library.and_then(|library| {
            version = api::version_of(&library, "cublasLtGetVersion");
            let api = api::CublasLt::load(library)?;
            Lt::start(api, &card).map_err(String::from)
        });
        // As 130100 since 13, 121000 before.
        let dotted = |v: usize| format!("{}.{}.{}", v / 10_000, v / 100 % 100, v % 100);
        let state = lt.as_ref().map(|_| version.map(dotted).unwrap_or_default());
        see(CUBLASLT, opened.origin, state.map_err(Clone::clone));

        let opened = CUDNN.open();
        let cudnn = opened.library.and_then(|library| {
            let version = api::version_of(&library, "cudnnGetVersion").unwrap_or_default();
            let api = api::Cudnn::load(library)?;
            cudnn::Library::start(api, version, &card).map_err(String::from)
        });
        let state = cudnn
            .as_ref()
            .map(|l| format!("{}.{}.{}", l.version / 10_000, l.version / 100 % 100, l.version % 100));
        see(CUDNN, opened.origin, state.map_err(Clone::clone));
        Self {
            card,
            facts,
            monitor: monitor.ok(),
            nvrtc,
            lt,
            cudnn,
            versions,
            modules: RefCell::default(),
            taken: all.saturating_sub(free),
        }
    }

    /// An own kernel, compiled when it is first asked for.
    fn function(&self, precision: Precision, name: &str) -> Result<Function, Refusal> {
        // TF32 is fp32 in memory.
        let precision = if precision == Precision::Tf32 {
            Precision::Fp32
        } else {
            precision
        };
        if let Some(module) = self.modules.borrow().get(&precision) {
            return module.function(name);
        }
        let nvrtc = self.nvrtc.as_ref().map_err(|why| missing(NVRTC.name, why))?;
        let module = Rc::new(Module::compile(nvrtc, &self.card, precision, self.facts.capability)?);
        self.modules.borrow_mut().insert(precision, Rc::clone(&module));
        module.function(name)
    }

    fn lt(&self) -> Result<&Rc<Lt>, Refusal> {
        self.lt.as_ref().map_err(|why| missing(CUBLASLT.name, why))
    }

    fn cudnn(&self) -> Result<&Rc<cudnn::Library>, Refusal> {
        self.cudnn.as_ref().map_err(|why| missing(CUDNN.name, why))
    }

    /// What ran: `accumulator` where it computes.
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

    /// Whether tensor cores of this card know bfloat16: since Ampere.
    fn knows(&self, precision: Precision) -> bool {
        self.facts.capability[0] >= 8 || matches!(precision, Precision::Fp32 | Precision::Fp16)
    }
}

fn missing(library: &str, why: &str) -> Refusal {
    Refusal::Unsupported(format!("{library}: {why}"))
}

fn nvrtc_version(nvrtc: &api::Nvrtc) -> String {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are written.
    unsafe { (nvrtc.nvrtcVersion)(&mut major, &mut minor) };
    format!("{major}.{minor}")
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
        // In a container the driver may not show even this process.
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
            Class::HostToDevice | Class::DeviceToHost => job::host_copy(self, kernel),
            Class::PeerCopy | Class::AllReduce | Class::AllGather | Class::ReduceScatter => Err(Refusal::Unsupported(
                "work between cards is not measured by this version".into(),
            )),
            _ => job::prepare(self, kernel),
        }
    }
}
