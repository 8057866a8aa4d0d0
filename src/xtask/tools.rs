//! Finds or installs the tools that the commands need beside cargo. Sources are cargo and npm packages, rustup, and the
//! system's package manager; no binaries are downloaded from elsewhere.

mod axe;
mod browser;
mod cargo_tool;
mod exports;
mod postgres;
mod system_package;
mod vulkan;
mod wasm_opt;

use std::path::PathBuf;

pub use axe::axe;
pub use browser::{Browser, browser};
pub use exports::{exports, packages_of_exports};
pub use postgres::postgres;
pub use vulkan::vulkan;

use crate::process::{cargo, output, program, run};
use crate::{Failure, root};
use cargo_tool::CargoTool;

/// Compilation target of the page.
pub const TARGET: &str = "wasm32-unknown-unknown";

const WASM_SPLIT: CargoTool = CargoTool {
    package: "wasm_split_cli_support",
    binary: "wasm-split-cli",
    options: &["--locked", "--features", "build-binary"],
};

const NEXTEST: CargoTool = CargoTool {
    package: "cargo-nextest",
    binary: "cargo-nextest",
    options: &["--locked"],
};

// Installed without `--locked`, because this package's lock file names releases that may no longer be available.
const WASM_BINDGEN: CargoTool = CargoTool {
    package: "wasm-bindgen-cli",
    binary: "wasm-bindgen",
    options: &["--bin", "wasm-bindgen"],
};

/// Folders of locally installed tools.
pub fn local_dirs() -> Vec<PathBuf> {
    vec![home().join("bin"), home().join("node_modules/.bin")]
}

/// Installs missing tools for building the page.
pub fn for_page() -> Result<(), Failure> {
    wasm_target()?;
    WASM_SPLIT.ensure_here("0.2.4")?;
    WASM_BINDGEN.ensure(&locked_version("wasm-bindgen")?)?;
    wasm_opt::ensure()
}

/// Installs missing tools for running the tests.
pub fn for_tests() -> Result<(), Failure> {
    nextest()?;
    axe()?;
    postgres();
    browser().map(drop)
}

/// Installs the test runner if it is missing.
pub fn nextest() -> Result<(), Failure> {
    NEXTEST.ensure_any("0.9")
}

/// Folder of locally installed tools, outside `target` so that `cargo clean` keeps it.
fn home() -> PathBuf {
    root().join(".tools")
}

/// Adds the WebAssembly target to the toolchain in use.
pub fn wasm_target() -> Result<(), Failure> {
    let libdir = output(cargo_rustc().args(["--print", "target-libdir", "--target", TARGET]));
    if libdir.is_some_and(|dir| PathBuf::from(dir).is_dir()) {
        return Ok(());
    }
    run(program("rustup").args(["target", "add", TARGET])).map_err(|e| {
        Failure::new(format!(
            "{e}\nthe page needs Rust's {TARGET} target; install Rust with rustup (https://rustup.rs)"
        ))
    })
}

fn cargo_rustc() -> std::process::Command {
    program(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Version of a package in `Cargo.lock`.
fn locked_version(package: &str) -> Result<String, Failure> {
    let lock = std::fs::read_to_string(root().join("Cargo.lock"))?;
    let entry = format!("name = \"{package}\"\nversion = \"");
    lock.split_once(&entry)
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(version, _)| version.to_owned())
        .ok_or_else(|| Failure::new(format!("Cargo.lock has no package `{package}`")))
}

/// Runs `cargo install` into the local folder, with a profile that favours compile time.
fn install(tool: &CargoTool, version: &str) -> Result<(), Failure> {
    let mut command = cargo();
    command
        .args(["install", tool.package, "--version", version, "--root"])
        .arg(home())
        .args(tool.options)
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_TARGET_DIR", root().join("target/tools"));
    run(&mut command)
}
