//! Lists the recorder's Python sources, so that the program can carry them.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new("../recorder")
        .canonicalize()
        .expect("the recorder lies beside");
    let mut files = Vec::new();
    python_files(&root, &mut files);
    files.sort();
    let mut listed = String::from("[\n");
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file
            .strip_prefix(&root)
            .expect("it lies within")
            .to_str()
            .expect("UTF-8");
        let name = name.replace('\\', "/");
        writeln!(listed, "    ({name:?}, include_str!({file:?})),").expect("a string takes it");
    }
    listed += "]\n";
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says where"));
    fs::write(out.join("recorder.rs"), listed).expect("cargo's folder takes it");
}

/// Python files of a folder and those within it.
fn python_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            python_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "py") {
            found.push(path);
        }
    }
}
