//! `cargo xtask lint`: checks format and lints.

use crate::process::{cargo, run};
use crate::{Failure, tools};

/// Runs rustfmt, and clippy for the native target and the browser.
///
/// # Errors
/// If either finds something.
pub fn lint() -> Result<(), Failure> {
    tools::wasm_target()?;
    run(cargo().args(["fmt", "--all", "--check"]))?;
    let native = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    run(cargo().args(native))?;
    let portable = [
        "clippy",
        "--workspace",
        "--features",
        "vramscope/portable",
        "--all-targets",
        "--locked",
    ];
    run(cargo().args(portable).args(["--", "-D", "warnings"]))?;
    let browser = [
        "clippy",
        "-p",
        "vramscope-engine",
        "-p",
        "vramscope-benchmark",
        "-p",
        "vramscope-time",
        "-p",
        "vramscope-plan",
        "-p",
        "vramscope-diagnose",
        "-p",
        "vramscope-course",
        "-p",
        "vramscope-app",
        "-p",
        "vramscope-diagnoser",
        "--locked",
    ];
    run(cargo()
        .args(browser)
        .args(["--target", "wasm32-unknown-unknown", "--", "-D", "warnings"]))
}
