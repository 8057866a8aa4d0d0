//! Implementation of the repository's commands. The browser tests use its static server.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

pub mod commands;
mod failure;
pub mod page;
mod process;
pub mod site;
pub mod static_server;
pub mod tools;

use std::path::PathBuf;

pub use failure::Failure;

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(PathBuf::from).unwrap_or(here)
}

/// Folder of cargo's results.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Folder of the built page.
pub fn dist() -> PathBuf {
    root().join("dist")
}
