//! Installs the tools that read exported plans, in their own Python environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::system_package;
use crate::process::{find, output, run};
use crate::{Failure, root};

/// Packages that all tools share.
const REQUIREMENTS: &str = "requirements.txt";
/// Packages that LLaMA-Factory wants older.
const LLAMA_FACTORYS: &str = "requirements-llama-factory.txt";
/// The installer, and its version.
const UV: &str = "uv==0.13.9";
/// What stands in for NVIDIA's libraries, which dry runs make too.
const STAND_INS: &str = "src/recorder/vramscope/cuda_stand_ins.py";

/// Creates `target/exports` if its sources have changed: the pinned packages of `tests/exports/requirements.txt`, those
/// that LLaMA-Factory wants older, and stubs of NVIDIA's libraries, which PyTorch's wheel links but a processor never calls.
///
/// # Errors
/// If Python or a package is missing; the message says which.
pub fn exports() -> Result<(), Failure> {
    let source = root().join("tests/exports");
    let folder = root().join("target/exports");
    let made_from = made_from(&source)?;
    let stamp = folder.join("made_from");
    if fs::read_to_string(&stamp).is_ok_and(|known| known == made_from) {
        return Ok(());
    }
    eprintln!("making target/exports: PyTorch, transformers, accelerate, TRL and others, about 700 MB");
    let _ = fs::remove_dir_all(&folder);
    let python3 = python3()?;
    run(Command::new(&python3).args(["-m", "venv"]).arg(&folder))?;
    install(&folder, &source.join(REQUIREMENTS), None)?;
    install(
        &folder,
        &source.join(LLAMA_FACTORYS),
        Some(&folder.join("llama-factory")),
    )?;
    run(Command::new(&python3)
        .arg(root().join(STAND_INS))
        .arg(torch_libraries(&folder)?))?;
    fs::write(&stamp, made_from).map_err(|error| Failure::new(format!("{}: {error}", stamp.display())))
}

/// Installs the packages of a file, and only those, in `folder`'s environment or in a folder beside its packages.
///
/// uv takes a twentieth of pip's time, which downloads and unpacks one package after the other. pip stays for machines
/// where uv has no wheel, or whose index is named in pip's configuration, which uv does not read.
pub(super) fn install(folder: &Path, requirements: &Path, beside: Option<&Path>) -> Result<(), Failure> {
    let python = folder.join("bin/python");
    let pip = |options: &[&str]| {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]);
        pip.arg("--disable-pip-version-check").args(options);
        pip
    };
    let packages = |mut command: Command| {
        command.arg("-r").arg(requirements);
        if let Some(beside) = beside {
            command.arg("--target").arg(beside);
        }
        run(&mut command)
    };
    let with_uv = || {
        run(&mut pip(&[UV]))?;
        let mut uv = Command::new(folder.join("bin/uv"));
        uv.args(["pip", "install", "--quiet", "--no-deps", "--python"])
            .arg(&python);
        packages(uv)
    };
    with_uv().or_else(|failure| {
        eprintln!("{failure}; pip is tried");
        packages(pip(&[]))
    })
}

/// Finds a Python that can create environments with pip, for which Debian has a separate package.
pub(super) fn python3() -> Result<PathBuf, Failure> {
    let look = || {
        let python = find(&["python3"])?;
        output(Command::new(&python).args(["-c", "import ensurepip, venv"])).map(|_| python)
    };
    if let Some(python) = look() {
        return Ok(python);
    }
    system_package::install(&["python3", "python3-venv"])?;
    look().ok_or_else(|| {
        Failure::new(
            "the tests of exported plans need Python 3 with venv and pip on PATH; \
             on Debian: apt-get install python3 python3-venv",
        )
    })
}

fn made_from(source: &Path) -> Result<String, Failure> {
    let mut all = String::new();
    let own = [REQUIREMENTS, LLAMA_FACTORYS].map(|name| source.join(name));
    for path in own.into_iter().chain([root().join(STAND_INS)]) {
        all += &fs::read_to_string(&path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    }
    Ok(all)
}

/// Returns `site-packages` of `target/exports`, which has PyTorch.
///
/// # Errors
/// When the environment is not whole.
pub fn packages_of_exports() -> Result<PathBuf, Failure> {
    let torch = torch_libraries(&root().join("target/exports"))?;
    let packages = torch.ancestors().nth(2).map(Path::to_path_buf);
    packages.ok_or_else(|| Failure::new("target/exports has no packages; remove the folder and try again"))
}

/// Path of `lib/python3.*/site-packages/torch/lib`.
fn torch_libraries(folder: &Path) -> Result<PathBuf, Failure> {
    let versions = fs::read_dir(folder.join("lib")).into_iter().flatten().flatten();
    versions
        .map(|version| version.path().join("site-packages/torch/lib"))
        .find(|path| path.is_dir())
        .ok_or_else(|| Failure::new("target/exports has no PyTorch; remove the folder and try again"))
}
