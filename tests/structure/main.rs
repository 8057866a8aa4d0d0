//! Structure of the repository: what may import what, and that each file says what it holds.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

mod automation;
mod files;
mod imports;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Rust files of the repository, each with its text.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in ["src", "tests"] {
        collect(&root().join(folder), &mut found);
    }
    assert!(found.len() > 500, "only {} files are found", found.len());
    found
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("the file can be read");
            found.push((path, text));
        }
    }
}
