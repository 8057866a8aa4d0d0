//! Assembles the published page: programs, words, course and styles under content-hashed names, the service worker for
//! offline use, and the page as a single file.

mod course;
mod dense;
mod exactness;
mod gallery;
mod glue;
mod imports;
mod kept;
mod markup;
mod model_hub;
mod packed;
mod parallel;
mod program;
mod published;
mod records;
mod service_worker;
mod single_file;
mod styles;
mod words;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::commands::Build;
use crate::process::beside;
use crate::{Failure, root, tools};
use program::Program;
use published::Published;

/// File name of the page.
pub const PAGE: &str = "index.html";
/// File name of the page as a single file.
pub const SINGLE_FILE: &str = "vramscope.html";
/// Script that other pages load to embed a widget.
pub const EMBED: &str = "embed.js";
/// Web app manifest, used when the page is installed.
const MANIFEST: &str = "manifest.webmanifest";
/// Plans that `cargo xtask plans` made.
const READY_PLANS: &str = "src/app/data/ready_plans.jsonl";
/// Attribute of the page that names the chunks of its program.
const CHUNKS: &str = " data-chunks";

/// Scripts of the page and of pages that embed it.
const SCRIPTS: [&str; 6] = ["fault.js", "boot.js", "worker.js", "readers.js", "offline.js", EMBED];
/// Package of the page's program, followed by that of the readers for `#/diagnose`.
const APP: &str = "vramscope-app";
const READERS: &str = "vramscope-diagnoser";

/// Builds the page into `dist`, which is emptied first, with tools that it installs where they are missing.
///
/// # Errors
/// If a tool cannot be installed, a program cannot be built, a file cannot be read or written, or the page has something that a single file cannot
/// contain.
pub fn build(dist: &Path, how: Build) -> Result<(), Failure> {
    // The tools are for what the compiler makes. It works on one crate at a time for minutes, which leaves a core to them.
    beside(tools::for_page, || program::compile(APP, how))?;
    // Not both packages in one run of cargo: the page alone loads families on demand.
    let readers = || program::compile(READERS, how).and_then(|()| Program::whole(READERS, how));
    let (readers, app) = beside(readers, || Program::in_chunks(APP, how))?;
    if dist.exists() {
        std::fs::remove_dir_all(dist)?;
    }
    for folder in ["icons", "data"] {
        std::fs::create_dir_all(dist.join(folder))?;
    }
    records::write(dist)?;
    let style = root().join("style");
    std::fs::copy(style.join(MANIFEST), dist.join(MANIFEST))?;
    for name in SCRIPTS {
        let script = std::fs::read_to_string(scripts().join(name))?;
        std::fs::write(dist.join(name), words::with_languages(&script))?;
    }
    for icon in std::fs::read_dir(style.join("icons"))? {
        let icon = icon?;
        std::fs::copy(icon.path(), dist.join("icons").join(icon.file_name()))?;
    }
    let mut page = Published::new(dist, std::fs::read_to_string(root().join(PAGE))?);
    model_hub::write(&mut page)?;
    page.add("style/icon.svg", &std::fs::read(style.join("icon.svg"))?)?;
    styles::join(&mut page)?;
    words::write(&mut page)?;
    course::write(&mut page)?;
    gallery::write(&mut page)?;
    exactness::write(&mut page)?;
    page.add("data/plans.jsonl", &std::fs::read(root().join(READY_PLANS))?)?;
    for (name, program) in [(APP, &app), (READERS, &readers)] {
        page.add(&format!("{name}.js"), program.glue.as_bytes())?;
        page.add(&format!("{name}.wasm"), &program.wasm)?;
    }
    let mut chunks = String::new();
    for (name, wasm) in &app.chunks {
        let file = page.write(&format!("chunks/{name}.wasm"), wasm)?;
        chunks += &format!(" data-chunk{name}=\"{file}\"");
    }
    page.expand(CHUNKS, &chunks)?;
    std::fs::write(dist.join(PAGE), &page.html)?;
    complete(dist, how)
}

/// Writes the files that are derived from the page's other files: the service worker, the single file, and the
/// compressed files.
///
/// # Errors
/// If a file cannot be read or written, or the page has something that a single file cannot contain.
pub fn complete(dist: &Path, how: Build) -> Result<(), Failure> {
    let day = Duration::from_secs(24 * 60 * 60);
    service_worker::write(dist)?;
    let page = single_file::of(dist, how)?;
    std::fs::write(dist.join(SINGLE_FILE), page)?;
    packed::write(dist, how)?;
    Ok(kept::remove_unused_since(SystemTime::now() - day)?)
}

/// Folder of the page's scripts.
fn scripts() -> PathBuf {
    root().join("src/app/js")
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

fn sha256(bytes: impl AsRef<[u8]>) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
