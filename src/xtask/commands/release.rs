//! `cargo xtask release`: the files of a release.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::process::{cargo, output, program, run};
use crate::{Failure, dist, root, target};

mod archive;
mod bill;

/// Crates that others can use by themselves, each behind those that it needs.
const PUBLISHED: [&str; 5] = [
    "vramscope-engine",
    "vramscope-benchmark",
    "vramscope-time",
    "vramscope-plan",
    "vramscope-launch",
];

/// Builds the binary, the wheel and the page's archive from a clean tree, with their checksums and the bill of materials; with
/// `--check`, packs the crates that are published and builds them as others would.
///
/// # Errors
/// If the tree is not clean, or something cannot be built.
pub fn release(args: &[String]) -> Result<(), Failure> {
    match args {
        [] => files(),
        [word] if word == "--check" => check(),
        _ => Err(Failure::usage("cargo xtask release takes --check or nothing")),
    }
}

fn check() -> Result<(), Failure> {
    let packages = PUBLISHED.iter().flat_map(|name| ["--package", name]);
    run(cargo()
        .args(["publish", "--dry-run", "--locked", "--allow-dirty"])
        .args(packages))
}

fn files() -> Result<(), Failure> {
    let commit = Commit::of_clean_tree()?;
    let folder = target().join("release-files");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let version = env!("CARGO_PKG_VERSION");
    let system = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);

    let built = ["build", "--release", "--locked", "--package", "vramscope"];
    run(reproducible(cargo().args(built), &commit))?;
    let binary = target()
        .join("release")
        .join(format!("vramscope{}", std::env::consts::EXE_SUFFIX));
    let name = format!("vramscope-{version}-{system}");
    let mut inside = vec![(binary, "vramscope".to_owned())];
    inside.extend(
        ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"].map(|file| (root().join(file), file.to_owned())),
    );
    archive::write(&folder.join(format!("{name}.tar.gz")), &name, inside, commit.time)?;

    super::build(super::Build::Published)?;
    let name = format!("vramscope-page-{version}");
    let page = archive::files_of(&dist())?;
    archive::write(&folder.join(format!("{name}.tar.gz")), &name, page, commit.time)?;

    wheel(&folder, &commit)?;
    fs::write(
        folder.join(format!("vramscope-{version}.cdx.json")),
        bill::of(&root(), version)?,
    )?;
    let sums = checksums(&folder)?;
    fs::write(folder.join("SHA256SUMS"), sums)?;
    eprintln!("the files of {version} ({}) are in {}", commit.name, folder.display());
    Ok(())
}

/// The commit that is released.
struct Commit {
    name: String,
    /// Its time, in seconds since 1970.
    time: u64,
}

impl Commit {
    fn of_clean_tree() -> Result<Self, Failure> {
        let git = |args: &[&str]| {
            output(program("git").args(args)).ok_or_else(|| Failure::new("a release needs git and a clone"))
        };
        let changed = git(&["status", "--porcelain"])?;
        if !changed.is_empty() {
            return Err(Failure::new(format!(
                "a release is made of a clean tree; these files are changed or new:\n{changed}"
            )));
        }
        let time = git(&["show", "--no-patch", "--format=%ct", "HEAD"])?;
        Ok(Self {
            name: git(&["rev-parse", "HEAD"])?,
            time: time
                .parse()
                .map_err(|error| Failure::new(format!("the time of the commit: {error}")))?,
        })
    }
}

/// Builds the wheel: one for each system, whatever Python is there, since it holds a program and no extension.
fn wheel(folder: &Path, commit: &Commit) -> Result<(), Failure> {
    let tools = target().join("maturin");
    let maturin = tools.join("bin/maturin");
    if !maturin.exists() {
        run(program("python3").args(["-m", "venv"]).arg(&tools))?;
        let install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "maturin>=1.9,<2",
        ];
        run(program(tools.join("bin/python")).args(install))?;
    }
    let words = ["build", "--release", "--locked", "--compatibility", "pypi", "--out"];
    run(reproducible(program(maturin).args(words).arg(folder), commit))
}

/// A build whose files are the same wherever and whenever it runs. The binary's and the wheel's have the same flags: with other
/// ones the wheel would compile everything once more.
fn reproducible<'a>(command: &'a mut Command, commit: &Commit) -> &'a mut Command {
    // Not in `RUSTFLAGS`, which is cut at spaces, and folders have some.
    let remap = format!("--remap-path-prefix={}=/vramscope", root().display());
    command
        .env("CARGO_ENCODED_RUSTFLAGS", remap)
        .env("SOURCE_DATE_EPOCH", commit.time.to_string())
}

/// SHA-256 of each file of a folder, as `sha256sum` writes and checks them.
fn checksums(folder: &Path) -> Result<String, Failure> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut out = String::new();
    for file in files {
        let digest = Sha256::digest(fs::read(&file)?);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        out += &format!("{hex}  {name}\n");
    }
    Ok(out)
}
