//! Finds or installs the tools that the commands need beside cargo. Sources are cargo, npm and Python packages, rustup, and
//! the system's package manager; no binaries are downloaded from elsewhere.

mod agents;
mod axe;
pub mod binaryen;
mod browser;
mod cargo_tool;
mod exports;
mod nextest;
mod postgres;
mod system_package;
mod vulkan;

use std::path::PathBuf;
use std::process::Command;

pub use agents::agents;
pub use axe::axe;
pub use browser::{Browser, browser};
pub use exports::{exports, packages_of_exports};
pub use nextest::nextest;
pub use postgres::postgres;
pub use vulkan::vulkan;

use crate::process::{cargo, find, output, program, run};
use crate::{Failure, root, target};
use cargo_tool::CargoTool;

/// Compilation target of the page.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Program of `src/page_tools`.
const PAGE_TOOLS: &str = "page-tools";

/// Folders of locally installed tools.
pub fn local_dirs() -> Vec<PathBuf> {
    vec![home().join("bin"), home().join("node_modules/.bin")]
}

/// Installs and builds what makes the page of compiled programs.
pub fn for_page() -> Result<(), Failure> {
    binaryen::ensure()?;
    // Name the whole workspace, so that dependencies keep the features that tests compile them with. Bars of progress
    // would overwrite those of the build beside this one.
    run(cargo()
        .args(["build", "--workspace", "--bin", PAGE_TOOLS, "--locked"])
        .env("CARGO_TERM_PROGRESS_WHEN", "never"))
}

/// A command of the program that splits and binds the page's programs.
pub fn page_tools() -> Command {
    program(target().join("debug").join(PAGE_TOOLS))
}

/// Installs missing tools for running the tests.
pub fn for_tests() -> Result<(), Failure> {
    nextest()?;
    axe()?;
    postgres();
    browser().map(drop)
}

/// Finds Node.js.
///
/// # Errors
/// If it is missing.
pub fn node() -> Result<PathBuf, Failure> {
    find(&["node", "nodejs"])
        .ok_or_else(|| Failure::new("there is no `node` on PATH: install Node.js 18 or later".to_owned()))
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

fn cargo_rustc() -> Command {
    program(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
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
