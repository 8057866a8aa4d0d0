//! Installs axe-core, which checks a page's accessibility. It runs in tests and is never shipped.

use std::path::PathBuf;

use crate::Failure;
use crate::process::{program, run};

use super::home;

const PACKAGE: &str = "axe-core@4.10.3";

/// Path of the script, which is installed from npm if it is missing.
///
/// # Errors
/// If npm is missing or cannot install it.
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
