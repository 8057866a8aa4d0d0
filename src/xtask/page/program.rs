//! Builds a program of the page: compiles it, splits it into chunks, adds its glue and optimises it.

use std::path::{Path, PathBuf};

use super::parallel::for_each;
use super::{base64, glue, imports, sha256};
use crate::commands::{Build, WASM_RUSTFLAGS};
use crate::process::{cargo, program, run};
use crate::{Failure, root, target, tools};

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
    /// Makes the program of a package that is compiled.
    ///
    /// # Errors
    /// If a tool fails.
    pub fn whole(package: &str, how: Build) -> Result<Self, Failure> {
        let compiled = compiled(package, how);
        let folder = Folder::of(package, &compiled)?;
        if !folder.is_done() {
            folder.empty()?;
            bind(&compiled, &folder.path, &[])?;
            optimize(&[folder.path.join("program_bg.wasm")], how)?;
            folder.done()?;
        }
        let glue = std::fs::read_to_string(folder.path.join("program.js"))?;
        let (wasm, glue) = imports::shorten(&std::fs::read(folder.path.join("program_bg.wasm"))?, &glue)?;
        Ok(Self {
            glue,
            wasm,
            chunks: Vec::new(),
        })
    }

    /// Makes the program of a package that is compiled, and splits it at its split points (`src/app/chunk.rs`).
    ///
    /// # Errors
    /// If a tool fails, or its output has an unexpected form.
    pub fn in_chunks(package: &str, how: Build) -> Result<Self, Failure> {
        let compiled = compiled(package, how);
        let folder = Folder::of(package, &compiled)?;
        let main = folder.path.join("program_bg.wasm");
        if !folder.is_done() {
            folder.empty()?;
            run(tools::page_tools().arg("split").args([&compiled, &folder.path]))?;
            // Keep the exports that chunks share with the main module; they would be removed as internal to the linker.
            bind(&folder.path.join("program.wasm"), &folder.path, &["--keep-lld-exports"])?;
            let chunks = glue::chunks(&folder.path)?.into_iter().map(|(_, file)| file);
            // The largest comes first, so that it does not start when all others are done.
            optimize(&std::iter::once(main.clone()).chain(chunks).collect::<Vec<_>>(), how)?;
            folder.done()?;
        }
        let mut chunks = Vec::new();
        for (name, file) in glue::chunks(&folder.path)? {
            chunks.push((name, std::fs::read(file)?));
        }
        let read = |path: &Path| std::fs::read_to_string(path);
        let glue = glue::join(
            &read(&root().join("src/app/js/chunks.js"))?,
            &read(&folder.path.join(glue::LOADER))?,
            &read(&folder.path.join("program.js"))?,
        )?;
        let (wasm, glue) = imports::shorten(&std::fs::read(main)?, &glue)?;
        Ok(Self { glue, wasm, chunks })
    }
}

/// Results of the steps after compilation, kept so that an unchanged program is not split and optimized again.
struct Folder {
    path: PathBuf,
    /// Hashes of what the results depend on: the compiled program, this one with the tools' options, and the tools.
    stamp: String,
}

impl Folder {
    const STAMP: &str = "stamp";

    fn of(package: &str, compiled: &Path) -> Result<Self, Failure> {
        let own = std::env::current_exe()?;
        let tools = tools::page_tools();
        let files = [compiled, &own, Path::new(tools.get_program())];
        let mut stamp = Vec::new();
        for file in files {
            stamp.extend(sha256(std::fs::read(file)?));
        }
        Ok(Self {
            path: target().join("page").join(package),
            stamp: base64(stamp),
        })
    }

    fn is_done(&self) -> bool {
        std::fs::read_to_string(self.path.join(Self::STAMP)).is_ok_and(|stamp| stamp == self.stamp)
    }

    fn empty(&self) -> Result<(), Failure> {
        if self.path.exists() {
            std::fs::remove_dir_all(&self.path)?;
        }
        Ok(std::fs::create_dir_all(&self.path)?)
    }

    fn done(&self) -> Result<(), Failure> {
        Ok(std::fs::write(self.path.join(Self::STAMP), &self.stamp)?)
    }
}

/// Compiles packages in one run of cargo: each takes a core for minutes when its crates are joined at the end.
pub fn compile(packages: &[&str], how: Build) -> Result<(), Failure> {
    let mut build = cargo();
    if how == Build::Published {
        build.env(WASM_RUSTFLAGS.0, WASM_RUSTFLAGS.1);
    }
    build.args([
        "build",
        "--locked",
        "--profile",
        how.profile(),
        "--target",
        tools::TARGET,
    ]);
    run(build.args(packages.iter().flat_map(|package| ["--package", package])))
}

/// Path of a package's compiled program.
fn compiled(package: &str, how: Build) -> PathBuf {
    target()
        .join(tools::TARGET)
        .join(how.profile())
        .join(format!("{package}.wasm"))
}

/// Generates the glue of a program: `program.js` and `program_bg.wasm`.
fn bind(wasm: &Path, folder: &Path, options: &[&str]) -> Result<(), Failure> {
    run(tools::page_tools().arg("bind").args([wasm, folder]).args(options))
}

/// Optimizes files in place for publication, one process for each core.
fn optimize(files: &[PathBuf], how: Build) -> Result<(), Failure> {
    if how != Build::Published {
        return Ok(());
    }
    for_each(files, |file| {
        // `wasm-opt` starts as many threads as there are cores by itself, which pays for large programs alone.
        run(program("wasm-opt")
            .env("BINARYEN_CORES", "1")
            .args(OPTIMIZE)
            .args([file, file]))
    })
}
