use crate::{Failure, dist, page, tools};

/// How rustc compiles the published page, as a variable of cargo's. Components and attributes are behind
/// one type each: leptos's code for them is there once. And the threshold for inlining lies between those
/// of "s" and "z": the engine is a twentieth smaller than at "s" and as fast (`cargo xtask bench-wasm`).
pub const WASM_RUSTFLAGS: (&str, &str) = (
    "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS",
    "--cfg=erase_components -Cllvm-args=-inline-threshold=25",
);

/// How a page is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// As people get it: optimized as a whole, which takes minutes.
    Published,
    /// For a look while developing: what changed is compiled, and nothing is optimized twice.
    Quick,
}

impl Build {
    /// Reads the arguments of `cargo xtask build`.
    ///
    /// # Errors
    /// When they are not understood.
    pub fn of(args: &[String]) -> Result<Self, Failure> {
        match args {
            [] => Ok(Self::Published),
            [flag] if flag == "--quick" => Ok(Self::Quick),
            _ => Err(Failure::usage("build takes nothing, or --quick")),
        }
    }

    /// The profile that cargo builds with.
    pub const fn profile(self) -> &'static str {
        match self {
            Self::Published => "wasm",
            Self::Quick => "quick",
        }
    }
}

/// Builds the page into `dist/`.
///
/// # Errors
/// When a tool is missing and cannot be installed, or the build fails.
pub fn build(how: Build) -> Result<(), Failure> {
    tools::for_page()?;
    page::build(&dist(), how)
}
