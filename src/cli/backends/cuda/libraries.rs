//! Finds NVIDIA's libraries: through the loader, in PyTorch's wheels, or in a CUDA toolkit.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use libloading::Library;

/// A library to look for: its name, and its file names.
#[derive(Debug, Clone, Copy)]
pub struct Sought {
    /// Name for people, such as `cuBLASLt`.
    pub name: &'static str,
    /// Purpose of the library.
    pub purpose: &'static str,
    stem: &'static str,
    /// Versions in file names, the newest first; empty for a name without version.
    versions: &'static [&'static str],
    /// True for a part of the driver, which is never in a wheel.
    of_driver: bool,
}

/// The driver.
pub const DRIVER: Sought = Sought {
    name: "NVIDIA driver",
    purpose: "anything on an NVIDIA GPU",
    stem: if cfg!(windows) { "nvcuda" } else { "cuda" },
    versions: &["1"],
    of_driver: true,
};
/// The driver's management library.
pub const NVML: Sought = Sought {
    name: "NVML",
    purpose: "clocks, temperature, power limit, ECC, other processes",
    stem: if cfg!(windows) { "nvml" } else { "nvidia-ml" },
    versions: &["1"],
    of_driver: true,
};
/// The runtime compiler.
pub const NVRTC: Sought = Sought {
    name: "NVRTC",
    purpose: "softmax, norms, activations, cross-entropy, AdamW, and the inputs of every kernel",
    stem: "nvrtc",
    versions: &["13", "12", "11.2"],
    of_driver: false,
};
/// Matrix products.
pub const CUBLASLT: Sought = Sought {
    name: "cuBLASLt",
    purpose: "matrix products and unfused attention",
    stem: "cublasLt",
    versions: &["13", "12", "11"],
    of_driver: false,
};
/// Fused attention.
pub const CUDNN: Sought = Sought {
    name: "cuDNN",
    purpose: "fused attention",
    stem: "cudnn",
    versions: &["9"],
    of_driver: false,
};

/// Collectives.
pub const NCCL: Sought = Sought {
    name: "NCCL",
    purpose: "collectives of two or more GPUs",
    stem: "nccl",
    versions: &["2"],
    of_driver: false,
};

/// A library that was opened, or the reason why none was.
pub struct Opened {
    /// The library.
    pub library: Result<Library, String>,
    /// Origin in words, without a path.
    pub origin: &'static str,
}

impl Opened {
    /// A library that was not looked for, because it would be of no use.
    pub fn not_looked_for(why: &str) -> Self {
        Self {
            library: Err(why.into()),
            origin: "nowhere",
        }
    }
}

impl Sought {
    /// Opens the first library that loads. PyTorch's wheels come first, because training would use them, then the
    /// loader's search path, then a toolkit.
    pub fn open(self) -> Opened {
        let mut refused = Vec::new();
        let names = self.file_names();
        let mut places: Vec<(&'static str, PathBuf)> = Vec::new();
        if !self.of_driver {
            places.extend(wheels().into_iter().map(|place| ("PyTorch's wheels", place)));
        }
        places.push(("the system", PathBuf::new()));
        if !self.of_driver {
            places.extend(toolkits().into_iter().map(|place| ("a CUDA toolkit", place)));
        }
        for (origin, place) in places {
            for name in &names {
                let path = place.join(name);
                // A bare name is left to the loader to find.
                if !place.as_os_str().is_empty() && !path.is_file() {
                    continue;
                }
                match open_shared(&path) {
                    Ok(library) => {
                        return Opened {
                            library: Ok(library),
                            origin,
                        };
                    }
                    Err(e) if !place.as_os_str().is_empty() => refused.push(format!("{name} of {origin}: {e}")),
                    Err(_) => {}
                }
            }
        }
        Opened {
            library: Err(self.missing(&refused)),
            origin: "nowhere",
        }
    }

    fn missing(self, refused: &[String]) -> String {
        if let Some(reason) = refused.first() {
            return format!("found, but it does not load: {reason}");
        }
        match self.of_driver {
            true if cfg!(target_os = "macos") => "there is none for macOS".into(),
            true => "not found: install NVIDIA's driver".into(),
            false => "not found in PyTorch's wheels, in the system's library folders, in LD_LIBRARY_PATH or in a CUDA \
                      toolkit; activate the environment that holds PyTorch, or set LD_LIBRARY_PATH"
                .into(),
        }
    }

    fn file_names(self) -> Vec<String> {
        let stem = self.stem;
        if cfg!(windows) {
            let versioned = self.versions.iter().flat_map(|v| {
                let v = v.replace('.', "");
                [format!("{stem}64_{v}.dll"), format!("{stem}64_{v}0_0.dll")]
            });
            return versioned.chain([format!("{stem}.dll")]).collect();
        }
        let versioned = self.versions.iter().map(|v| format!("lib{stem}.so.{v}"));
        versioned.chain([format!("lib{stem}.so")]).collect()
    }
}

/// Opens a library. Libraries that load it by name afterwards find the open one.
fn open_shared(path: &Path) -> Result<Library, String> {
    // SAFETY: NVIDIA's libraries may run initialisers when they are opened; that is what they are for.
    unsafe { Library::new(path) }.map_err(without_path)
}

/// The loader's message without the path before the first colon.
fn without_path(error: libloading::Error) -> String {
    let text = error.to_string();
    text.split_once(": ").map_or(text.clone(), |(_, rest)| rest.to_owned())
}

/// Library folders in the wheels of every visible Python environment, found without running Python.
fn wheels() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for site in sites() {
        folders.push(site.join("torch/lib"));
        let Ok(packages) = fs::read_dir(site.join("nvidia")) else {
            continue;
        };
        let mut packages: Vec<_> = packages.flatten().map(|entry| entry.path()).collect();
        packages.sort();
        folders.extend(
            packages
                .iter()
                .flat_map(|package| [package.join("lib"), package.join("bin")]),
        );
    }
    folders
}

/// Folders of Python packages, those of the active environment first.
fn sites() -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> = Vec::new();
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        prefixes.extend(env::var_os(name).map(PathBuf::from));
    }
    let on_path = env::var_os("PATH").unwrap_or_default();
    for folder in env::split_paths(&on_path) {
        if ["python3", "python", "python.exe"]
            .iter()
            .any(|name| folder.join(name).exists())
        {
            prefixes.extend(folder.parent().map(Path::to_path_buf));
            prefixes.push(folder);
        }
    }
    prefixes.extend(env::var_os("HOME").map(|home| Path::new(&home).join(".local")));
    prefixes.extend(["/usr/local", "/usr"].map(PathBuf::from));
    let mut sites: Vec<PathBuf> = env::var_os("PYTHONPATH")
        .map(|paths| env::split_paths(&paths).collect())
        .unwrap_or_default();
    for prefix in prefixes {
        sites.push(prefix.join("Lib/site-packages"));
        for lib in ["lib", "lib64"] {
            let Ok(entries) = fs::read_dir(prefix.join(lib)) else {
                continue;
            };
            let pythons = entries.flatten().map(|entry| entry.path());
            let mut pythons: Vec<_> = pythons
                .filter(|path| {
                    path.file_name()
                        .is_some_and(|name| name.to_string_lossy().starts_with("python3"))
                })
                .collect();
            pythons.sort();
            sites.extend(
                pythons
                    .iter()
                    .flat_map(|python| [python.join("site-packages"), python.join("dist-packages")]),
            );
        }
    }
    let mut seen = BTreeSet::new();
    sites.retain(|site| site.is_dir() && seen.insert(site.clone()));
    sites
}

fn toolkits() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .filter_map(env::var_os)
        .map(PathBuf::from)
        .collect();
    if let Ok(entries) = fs::read_dir("/usr/local") {
        let paths = entries.flatten().map(|entry| entry.path());
        let mut found: Vec<_> = paths
            .filter(|path| {
                path.file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with("cuda"))
            })
            .collect();
        found.sort();
        roots.extend(found.into_iter().rev());
    }
    let parts = [
        "lib64",
        "lib",
        "targets/x86_64-linux/lib",
        "targets/sbsa-linux/lib",
        "bin",
        "bin/x64",
    ];
    roots
        .iter()
        .flat_map(|root| parts.map(|part| root.join(part)))
        .collect()
}
