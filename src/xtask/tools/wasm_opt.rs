//! Installs Binaryen's `wasm-opt`, which makes the page's code smaller and faster.

use crate::Failure;
use crate::process::{output, program, run};

use super::home;

/// Oldest supported release: 108 confuses the two tables that wasm-bindgen writes.
const OLDEST: u32 = 120;

/// npm package with Binaryen compiled to JavaScript, which is the same on every machine with Node.js.
const PACKAGE: &str = "binaryen@123.0.0";

/// Installs the npm package unless a recent release is on the search path.
pub fn ensure() -> Result<(), Failure> {
    if found().is_some_and(|version| version >= OLDEST) {
        return Ok(());
    }
    let options = ["install", "--no-audit", "--no-fund", "--no-save", PACKAGE, "--prefix"];
    run(program("npm").args(options).arg(home())).map_err(|e| {
        Failure::new(format!(
            "{e}\nthe page needs `wasm-opt`: install Binaryen, or Node with npm"
        ))
    })
}

/// The number in `wasm-opt version 108 (version_108)`.
fn found() -> Option<u32> {
    let printed = output(program("wasm-opt").arg("--version"))?;
    printed.split_whitespace().nth(2)?.parse().ok()
}
