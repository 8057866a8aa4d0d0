//! Builds a program of the page: compiles it, splits it into chunks, adds its glue and optimises it.

use std::path::{Path, PathBuf};

use super::{base64, glue, imports, sha256};
use crate::commands::{Build, WASM_RUSTFLAGS};
use crate::process::{cargo, program, run};
use crate::{Failure, root, target, tools};

/// Script that optimizes files, relative to the repository's root.
const OPTIMIZE: &str = "src/xtask/page/optimize.mjs";

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
        let folder = Folder::of(package, &compiled, how)?;
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
        let folder = Folder::of(package, &compiled, how)?;
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

    fn of(package: &str, compiled: &Path, how: Build) -> Result<Self, Failure> {
        let own = std::env::current_exe()?;
        let tools = tools::page_tools();
        let script = root().join(OPTIMIZE);
        let files = [compiled, &own, Path::new(tools.get_program()), &script];
        let mut stamp = Vec::new();
        for file in files {
            stamp.extend(sha256(std::fs::read(file)?));
        }
        Ok(Self {
            path: target().join("page").join(how.name()).join(package),
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

/// Compiles a package.
pub fn compile(package: &str, how: Build) -> Result<(), Failure> {
    let mut build = cargo();
    if how != Build::Quick {
        build.env(WASM_RUSTFLAGS.0, WASM_RUSTFLAGS.1);
    }
    let options = [
        "--profile",
        how.profile(),
        "--target",
        tools::TARGET,
        "--package",
        package,
    ];
    run(build.args(["build", "--locked"]).args(options))
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

/// Optimizes files in place for publication.
fn optimize(files: &[PathBuf], how: Build) -> Result<(), Failure> {
    if how != Build::Published {
        return Ok(());
    }
    let mut node = program(tools::node()?);
    run(node.arg(OPTIMIZE).arg(tools::binaryen::library()).args(files))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A stand-in of the optimizer that warns at length, as Binaryen does of files with many names.
    const LIBRARY: &str = r#"
        const ignored = () => {};
        const optimizer = { Features: {}, readBinary: (bytes) => ({
            setFeatures: ignored, runPasses: ignored, dispose: ignored,
            optimize() { for (let line = 0; line < 20000; line += 1) console.warn("warning: ".padEnd(60, "name ")); },
            emitBinary: () => new Uint8Array([...bytes, 1]),
        }) };
        export default new Proxy(optimizer, { get: (own, name) => own[name] ?? ignored });
    "#;

    /// A thread whose warnings nobody read stayed for ever, and the build with it.
    #[test]
    fn the_optimizer_ends_however_much_it_warns() {
        let folder = std::env::temp_dir().join(format!("vramscope optimize {}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let library = folder.join("library.mjs");
        fs::write(&library, LIBRARY).unwrap();
        let files: Vec<PathBuf> = (0..3).map(|number| folder.join(format!("{number}.wasm"))).collect();
        for file in &files {
            fs::write(file, [0]).unwrap();
        }
        let mut node = program(tools::node().unwrap());
        run(node.current_dir(root()).arg(OPTIMIZE).arg(&library).args(&files)).unwrap();
        for file in &files {
            assert_eq!(fs::read(file).unwrap(), [0, 1]);
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
