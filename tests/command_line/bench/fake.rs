//! Fake versions of NVIDIA's libraries, compiled from `fake/` by the C compiler that Rust links with.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::vramscope;

/// A library that a machine may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fake {
    /// The driver.
    Driver,
    /// A driver from before it supported copies between cards.
    OldDriver,
    /// The driver's management library.
    Nvml,
    /// The runtime compiler.
    Nvrtc,
    /// Collectives.
    Nccl,
    /// A file named like the compiler that is not a library.
    BrokenNvrtc,
}

impl Fake {
    /// Source file, compiler options, and file name of the library.
    const fn how(self) -> (&'static str, &'static [&'static str], &'static str) {
        match self {
            Self::Driver => ("cuda.c", &[], "libcuda.so.1"),
            Self::OldDriver => ("cuda.c", &["-DOLD"], "libcuda.so.1"),
            Self::Nvml => ("nvml.c", &[], "libnvidia-ml.so.1"),
            Self::Nvrtc => ("nvrtc.c", &[], "nvidia/fake/lib/libnvrtc.so.13"),
            Self::Nccl => ("nccl.c", &[], "nvidia/fake/lib/libnccl.so.2"),
            Self::BrokenNvrtc => ("", &[], "nvidia/fake/lib/libnvrtc.so.13"),
        }
    }
}

/// A simulated machine: its libraries and settings.
pub struct Machine {
    folder: PathBuf,
    settings: Vec<(&'static str, String)>,
}

impl Machine {
    /// A machine with these libraries, in a folder named after the test.
    pub fn with(test: &str, libraries: &[Fake]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("machine-{test}"));
        let _ = std::fs::remove_dir_all(&folder);
        for library in libraries {
            let (source, options, file) = library.how();
            let file = folder.join(file);
            std::fs::create_dir_all(file.parent().expect("it is in a folder")).expect("a folder");
            if source.is_empty() {
                std::fs::write(&file, "no library").expect("a file");
                continue;
            }
            let source = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../tests/command_line/bench/fake")
                .join(source);
            let made = Command::new("cc")
                .args(["-shared", "-fPIC", "-O1", "-o"])
                .arg(&file)
                .args(options)
                .arg(source)
                .status()
                .expect("there is a C compiler");
            assert!(made.success(), "{library:?} does not compile");
        }
        Self {
            folder,
            settings: Vec::new(),
        }
    }

    /// Adds a setting under the name that the sources read.
    pub fn set(mut self, name: &'static str, value: impl ToString) -> Self {
        self.settings.push((name, value.to_string()));
        self
    }

    /// Environment variables that make a program see this machine.
    pub fn environment(&self) -> impl Iterator<Item = (&'static str, std::ffi::OsString)> {
        // Python's packages are searched before other places on the machine.
        let places = ["PYTHONPATH", "LD_LIBRARY_PATH"].map(|name| (name, self.folder.clone().into_os_string()));
        let settings = self.settings.iter().map(|(name, value)| (*name, value.into()));
        places.into_iter().chain(settings)
    }

    /// A `vramscope bench` command on this machine.
    pub fn bench(&self, args: &[&str]) -> Command {
        let mut command = vramscope();
        command.arg("bench").args(args).envs(self.environment());
        command
    }

    /// Path of a file on this machine.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}
