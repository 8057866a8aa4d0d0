//! axe-core, which looks for what keeps people out of a page. It runs in tests and is never shipped.

use std::path::PathBuf;

use crate::Failure;
use crate::process::{program, run};

use super::home;

const PACKAGE: &str = "axe-core@4.10.3";

/// The script, installed from npm where it is missing.
///
/// # Errors
/// When npm is missing or cannot install it.
pub fn axe() -> Result<PathBuf, Failure> {
    let script = home().join("axe/node_modules/axe-core/axe.min.js");
    if !script.is_file() {
        let options = ["install", "--no-audit", "--no-fund", "--no-save", PACKAGE, "--prefix"];
        run(program("npm").args(options).arg(home().join("axe"))).map_err(|e| {
            Failure::new(format!(
                "{e}\nthe tests of accessibility need axe-core: install Node with npm"
            ))
        })?;
    }
    Ok(script)
}
