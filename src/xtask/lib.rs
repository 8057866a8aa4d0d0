//! What the repository's commands are made of. The browser tests use the static server.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

pub mod commands;
mod failure;
pub mod page;
mod process;
pub mod static_server;
pub mod tools;

use std::path::PathBuf;

pub use failure::Failure;

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(PathBuf::from).unwrap_or(here)
}

/// Where the built page lies.
pub fn dist() -> PathBuf {
    root().join("dist")
}
