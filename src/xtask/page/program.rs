//! Builds a program of the page: compiles it, splits it into chunks, adds its glue and optimises it.

use std::path::{Path, PathBuf};

use super::{glue, imports};
use crate::commands::{Build, WASM_RUSTFLAGS};
use crate::process::{cargo, program, run};
use crate::{Failure, root, tools};

/// Options of `wasm-opt` for a small published program. Inlining is off, since inlined code compresses worse. The
/// page's memory starts out as zeros and has nothing at its lowest addresses.
const OPTIMIZE: [&str; 16] = [
    "-Os",
    "--always-inline-max-function-size=0",
    "--one-caller-inline-max-function-size=0",
    "--flexible-inline-max-function-size=0",
    "--low-memory-unused",
    "--zero-filled-memory",
    "--strip-producers",
    "--strip-target-features",
    "--enable-bulk-memory",
    "--enable-nontrapping-float-to-int",
    "--enable-sign-ext",
    "--enable-mutable-globals",
    "--enable-reference-types",
    "--enable-multivalue",
    "--quiet",
    "-o",
];

/// A program, ready for publication.
pub struct Program {
    /// Script that starts the program.
    pub glue: String,
    /// WebAssembly that is loaded at the start.
    pub wasm: Vec<u8>,
    /// Lazily loaded chunks, by name.
    pub chunks: Vec<(String, Vec<u8>)>,
}

impl Program {
    /// Builds the program of a package.
    ///
    /// # Errors
    /// If a tool fails.
    pub fn whole(package: &str, how: Build) -> Result<Self, Failure> {
        let compiled = compile(package, how)?;
        let folder = empty_folder(package)?;
        bind(&compiled, &folder, &[])?;
        let glue = std::fs::read_to_string(folder.join("program.js"))?;
        let (wasm, glue) = imports::shorten(&optimized(&folder.join("program_bg.wasm"), how)?, &glue)?;
        Ok(Self {
            glue,
            wasm,
            chunks: Vec::new(),
        })
    }

    /// Builds the program of a package and splits it at its split points (`src/app/chunk.rs`).
    ///
    /// # Errors
    /// If a tool fails, or its output has an unexpected form.
    pub fn in_chunks(package: &str, how: Build) -> Result<Self, Failure> {
        let compiled = compile(package, how)?;
        let folder = empty_folder(package)?;
        let chunked = ["--target", "web", "--out-name", "program"];
        run(program("wasm-split-cli").args([&compiled, &folder]).args(chunked))?;
        // Keep the exports that chunks share with the main module; they would be removed as internal to the linker.
        bind(&folder.join("program.wasm"), &folder, &["--keep-lld-exports"])?;
        let mut chunks = Vec::new();
        for (name, file) in glue::chunks(&folder)? {
            chunks.push((name, optimized(&file, how)?));
        }
        let read = |path: &Path| std::fs::read_to_string(path);
        let glue = glue::join(
            &read(&root().join("src/app/js/chunks.js"))?,
            &read(&folder.join(glue::LOADER))?,
            &read(&folder.join("program.js"))?,
        )?;
        let (wasm, glue) = imports::shorten(&optimized(&folder.join("program_bg.wasm"), how)?, &glue)?;
        Ok(Self { glue, wasm, chunks })
    }
}

/// Compiles a package.
fn compile(package: &str, how: Build) -> Result<PathBuf, Failure> {
    let mut build = cargo();
    if how == Build::Published {
        build.env(WASM_RUSTFLAGS.0, WASM_RUSTFLAGS.1);
    }
    let (profile, target) = (how.profile(), tools::TARGET);
    let options = ["--package", package, "--profile", profile, "--target", target];
    run(build.args(["build", "--locked"]).args(options))?;
    Ok(target_folder()
        .join(target)
        .join(profile)
        .join(format!("{package}.wasm")))
}

/// Creates an empty folder for the build steps of a program.
fn empty_folder(package: &str) -> Result<PathBuf, Failure> {
    let folder = target_folder().join("page").join(package);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Generates the glue of a program: `program.js` and `program_bg.wasm`.
fn bind(wasm: &Path, folder: &Path, options: &[&str]) -> Result<(), Failure> {
    let named = ["--target", "web", "--no-typescript", "--out-name", "program"];
    run(program("wasm-bindgen")
        .args(named)
        .args(options)
        .arg("--out-dir")
        .args([folder, wasm]))
}

fn optimized(file: &Path, how: Build) -> Result<Vec<u8>, Failure> {
    if how == Build::Published {
        run(program("wasm-opt").args(OPTIMIZE).args([file, file]))?;
    }
    Ok(std::fs::read(file)?)
}

fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into)
}
