//! Looks for the CUDA driver, a card, and NVIDIA's libraries.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::device::{Card, Facts};
use super::gemm::Lt;
use super::libraries::{CUBLASLT, CUDNN, DRIVER, NCCL, NVML, NVRTC, Opened, Sought};
use super::nvml::Monitor;
use super::{Cuda, api, collective, cudnn};

/// Oldest supported driver: CUDA 11.
const OLDEST_CUDA: i32 = 11_000;

/// Result of looking for a library.
pub struct Sighting {
    /// Name of the library.
    pub name: &'static str,
    /// Purpose of the library.
    pub purpose: &'static str,
    /// Version and origin, or the reason why it cannot be used.
    pub state: Result<String, String>,
}

/// Results of looking for NVIDIA's driver and libraries.
pub struct Found {
    /// All libraries, in the order of the search.
    pub libraries: Vec<Sighting>,
    /// The card, or the reason why there is none.
    pub card: Result<Cuda, String>,
}

/// Looks for the driver, a card and the libraries.
pub fn find() -> Found {
    let mut libraries = Vec::new();
    let card = DRIVER.open();
    let opened = card.library.and_then(api::Driver::load).and_then(|driver| {
        let card = Card::first(driver)?;
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
        let mut search = Search {
            libraries,
            versions: BTreeMap::new(),
        };
        let monitor = search.nvml(&facts);
        // The order matters: cuDNN loads NVRTC and cuBLASLt by name, and finds them if they are already open.
        let nvrtc = search.nvrtc();
        let lt = search.cublaslt(&card);
        let cudnn = search.cudnn(&card);
        let nccl = search.nccl(&facts);
        Self {
            card,
            facts,
            monitor,
            nvrtc,
            lt,
            cudnn,
            nccl,
            others: RefCell::default(),
            versions: search.versions,
            modules: RefCell::default(),
            taken: all.saturating_sub(free),
        }
    }
}

/// Opens the libraries that a card's kernels come from, and keeps what was found.
struct Search<'a> {
    libraries: &'a mut Vec<Sighting>,
    versions: BTreeMap<&'static str, String>,
}

impl Search<'_> {
    /// Keeps the version of a library, or the reason why it cannot be used.
    fn note(&mut self, sought: Sought, origin: &str, version: Result<String, String>) {
        if let Ok(version) = &version {
            self.versions.insert(sought.name, version.clone());
        }
        self.libraries.push(Sighting {
            name: sought.name,
            purpose: sought.purpose,
            state: version.map(|version| format!("{version}, of {origin}")),
        });
    }

    fn nvml(&mut self, facts: &Facts) -> Option<Monitor> {
        let monitor =
            NVML.open().library.and_then(api::Nvml::load).and_then(|api| {
                Monitor::open(api, &facts.bus_id).ok_or_else(|| "it does not know this card".to_owned())
            });
        let driver = monitor.as_ref().map(|m| m.driver().unwrap_or_default());
        self.note(NVML, "the driver", driver.map_err(Clone::clone));
        monitor.ok()
    }

    fn nvrtc(&mut self) -> Result<api::Nvrtc, String> {
        let opened = NVRTC.open();
        let nvrtc = opened.library.and_then(api::Nvrtc::load);
        let version = nvrtc.as_ref().map(nvrtc_version);
        self.note(NVRTC, opened.origin, version.map_err(Clone::clone));
        nvrtc
    }

    fn cublaslt(&mut self, card: &Rc<Card>) -> Result<Rc<Lt>, String> {
        let opened = CUBLASLT.open();
        let mut version = None;
        let lt = opened.library.and_then(|library| {
            version = api::version_of(&library, "cublasLtGetVersion");
            let api = api::CublasLt::load(library)?;
            Lt::start(api, card).map_err(String::from)
        });
        // cuBLASLt numbers 13.1.0 as 130100 and 12.10.0 as 121000.
        let dotted = |v: usize| format!("{}.{}.{}", v / 10_000, v / 100 % 100, v % 100);
        let version = lt.as_ref().map(|_| version.map(dotted).unwrap_or_default());
        self.note(CUBLASLT, opened.origin, version.map_err(Clone::clone));
        lt
    }

    fn cudnn(&mut self, card: &Rc<Card>) -> Result<Rc<cudnn::Library>, String> {
        let opened = CUDNN.open();
        let cudnn = opened.library.and_then(|library| {
            let version = api::version_of(&library, "cudnnGetVersion").unwrap_or_default();
            let api = api::Cudnn::load(library)?;
            cudnn::Library::start(api, version, card).map_err(String::from)
        });
        let version = cudnn
            .as_ref()
            .map(|l| format!("{}.{}.{}", l.version / 10_000, l.version / 100 % 100, l.version % 100));
        self.note(CUDNN, opened.origin, version.map_err(Clone::clone));
        cudnn
    }

    fn nccl(&mut self, facts: &Facts) -> Result<Rc<collective::Library>, String> {
        let opened = match facts.count {
            0 | 1 => Opened::not_looked_for("not looked for: needs two GPUs, this process sees one"),
            _ => NCCL.open(),
        };
        let nccl = opened.library.and_then(collective::Library::start);
        let version = nccl.as_ref().map(|library| library.version());
        self.note(NCCL, opened.origin, version.map_err(Clone::clone));
        nccl
    }
}

fn nvrtc_version(nvrtc: &api::Nvrtc) -> String {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are written.
    unsafe { (nvrtc.nvrtcVersion)(&mut major, &mut minor) };
    format!("{major}.{minor}")
}
