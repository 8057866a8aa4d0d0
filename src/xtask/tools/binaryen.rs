//! Installs Binaryen, which makes the page's code smaller and faster.

use std::path::PathBuf;

use crate::Failure;
use crate::process::{program, run};

use super::home;

/// npm package with Binaryen compiled to JavaScript, which is the same on every machine with Node.js.
const PACKAGE: (&str, &str) = ("binaryen", "123.0.0");

/// Installs the npm package if it is missing.
///
/// # Errors
/// If npm is missing or fails.
pub fn ensure() -> Result<(), Failure> {
    let (name, version) = PACKAGE;
    let stated = std::fs::read_to_string(folder().join("package.json")).unwrap_or_default();
    if stated.contains(&format!("\"version\": \"{version}\"")) {
        return Ok(());
    }
    let package = format!("{name}@{version}");
    let options = ["install", "--no-audit", "--no-fund", "--no-save", &package, "--prefix"];
    run(program("npm").args(options).arg(home()))
        .map_err(|e| Failure::new(format!("{e}\nthe page needs Node.js with npm: install both")))
}

/// The library for Node.js.
pub fn library() -> PathBuf {
    folder().join("index.js")
}

fn folder() -> PathBuf {
    home().join("node_modules").join(PACKAGE.0)
}
