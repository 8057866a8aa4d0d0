//! Lists the recorder's Python sources, so that the program can carry them, and names the phrases that it shares with the
//! page.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Subjects of the page's phrases that the command line prints too.
const SHARED: [&str; 6] = ["around", "benchmarks", "diagnose", "plan", "recommend", "time"];

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
    println!("cargo::rerun-if-changed=../app/locales");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says where"));
    fs::write(out.join("recorder.rs"), listed).expect("cargo's folder takes it");
    let phrases = vramscope_phrases::read(Path::new("../app/locales")).expect("the page's phrases are whole");
    let named = vramscope_phrases::english(&phrases, &SHARED);
    fs::write(out.join("phrases.rs"), named).expect("cargo's folder takes it");
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
