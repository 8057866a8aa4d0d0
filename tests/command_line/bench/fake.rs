//! Libraries that stand in for NVIDIA's, compiled from `fake/` by the C compiler that Rust links with.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::vramscope;

/// A library that can be there or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fake {
    /// The driver.
    Driver,
    /// The driver as it was before it knew of copies between cards.
    OldDriver,
    /// The driver's management library.
    Nvml,
    /// The run-time compiler.
    Nvrtc,
    /// Collectives.
    Nccl,
    /// A file of the compiler's name that is no library.
    BrokenNvrtc,
}

impl Fake {
    /// Source, options and file.
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

/// A machine of a test's own: the libraries that it has, and its settings.
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

    /// The same with a setting, as the sources name them.
    pub fn set(mut self, name: &'static str, value: impl ToString) -> Self {
        self.settings.push((name, value.to_string()));
        self
    }

    /// Variables that make a program see it.
    pub fn environment(&self) -> impl Iterator<Item = (&'static str, std::ffi::OsString)> {
        // Python's packages are looked through before what else is on the machine.
        let places = ["PYTHONPATH", "LD_LIBRARY_PATH"].map(|name| (name, self.folder.clone().into_os_string()));
        let settings = self.settings.iter().map(|(name, value)| (*name, value.into()));
        places.into_iter().chain(settings)
    }

    /// `vramscope bench` on it.
    pub fn bench(&self, args: &[&str]) -> Command {
        let mut command = vramscope();
        command.arg("bench").args(args).envs(self.environment());
        command
    }

    /// A file on it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}
