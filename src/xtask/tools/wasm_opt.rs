//! Binaryen's `wasm-opt`, which makes the page's code smaller and faster.

use crate::Failure;
use crate::process::{output, program, run};

use super::home;

/// The oldest release known to keep what wasm-bindgen writes: 108 mixes up its two tables.
const OLDEST: u32 = 120;

/// The npm package is Binaryen compiled to JavaScript: the same on every machine with Node.
const PACKAGE: &str = "binaryen@123.0.0";

/// Installs it from npm, unless a recent one is on the search path.
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
