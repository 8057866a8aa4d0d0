//! Gathers the kinds of evidence in `kinds/` into one JSON object, so that adding a kind is adding a file.

#![allow(clippy::disallowed_methods, reason = "a build script runs natively")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    collect(Path::new("kinds"), &mut files)?;
    files.sort();
    let (mut all, mut notes) = (Map::new(), Map::new());
    for file in files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file
            .file_stem()
            .ok_or("a file has a name")?
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(&file)?;
        let mut kind: Map<String, Value> =
            toml::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        // Sources and examples are for readers of the file and for tests: programs do not carry them.
        let note = ["sources", "example"].map(|key| {
            (
                key.to_owned(),
                kind.remove(key).unwrap_or_else(|| Value::Array(Vec::new())),
            )
        });
        notes.insert(name.clone(), Value::Object(note.into_iter().collect()));
        if all.insert(name.clone(), Value::Object(kind)).is_some() {
            return Err(format!("{name}: two kinds have this name").into());
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    fs::write(out.join("kinds.json"), Value::Object(all).to_string())?;
    fs::write(out.join("notes.json"), Value::Object(notes).to_string())?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "toml") {
            files.push(path);
        }
    }
    Ok(())
}
