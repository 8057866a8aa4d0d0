//! What the built page gets beside what trunk makes of it: its words, its course, its style sheets as one
//! file, the service worker that keeps it for use offline, and the page as one file.

mod course;
mod markup;
mod service_worker;
mod single_file;
mod styles;
mod words;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::Failure;

/// The page, and all of it in one file.
pub const PAGE: &str = "index.html";
/// The page as one file.
pub const SINGLE_FILE: &str = "vramscope.html";
/// What other pages load to show a widget.
pub const EMBED: &str = "embed.js";

/// Completes the page that trunk built into `dist`.
///
/// # Errors
/// When a file cannot be read or written, or the page has something that one file cannot carry.
pub fn complete(dist: &Path) -> Result<(), Failure> {
    styles::join(dist)?;
    words::write(dist)?;
    course::write(dist)?;
    service_worker::write(dist)?;
    let page = single_file::of(dist)?;
    std::fs::write(dist.join(SINGLE_FILE), page)?;
    Ok(())
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// What distinguishes a content in a file's name.
fn digest(content: &str) -> String {
    sha256(content)
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn sha256(bytes: impl AsRef<[u8]>) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
