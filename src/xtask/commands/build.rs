//! `cargo xtask build`: builds the page.

use crate::{Failure, dist, page, tools};

/// Environment variable with rustc's flags for the published page. `erase_components` compiles leptos's code for
/// components and attributes only once, behind one type each. The inlining threshold lies between those of "s" and "z":
/// the engine is 5% smaller than with "s" and as fast (`cargo xtask bench-wasm`).
pub const WASM_RUSTFLAGS: (&str, &str) = (
    "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS",
    "--cfg=erase_components -Cllvm-args=-inline-threshold=25",
);

/// Kind of build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// For publication: optimized and packed as far as it goes, which takes minutes after the compiler.
    Published,
    /// For a look on this machine: compiled as for publication, and served as it is then, since nothing is downloaded.
    Local,
    /// For development: only changes are compiled, and nothing is optimised afterwards.
    Quick,
}

impl Build {
    /// Parses the arguments of `cargo xtask build`.
    ///
    /// # Errors
    /// If an argument is unknown.
    pub fn of(args: &[String]) -> Result<Self, Failure> {
        match args {
            [] => Ok(Self::Published),
            [flag] if flag == "--quick" => Ok(Self::Quick),
            _ => Err(Failure::usage("build takes nothing, or --quick")),
        }
    }

    /// Name of the folder with the build's results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Local => "local",
            Self::Quick => "quick",
        }
    }

    /// Cargo profile of the build.
    pub const fn profile(self) -> &'static str {
        match self {
            Self::Published => "wasm",
            Self::Local => "wasm-local",
            Self::Quick => "quick",
        }
    }
}

/// Builds the page into `dist/`.
///
/// # Errors
/// If a tool is missing and cannot be installed, or the build fails.
pub fn build(how: Build) -> Result<(), Failure> {
    tools::wasm_target()?;
    page::build(&dist(), how)
}
