//! Search for the user's Python interpreter.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Paths of the interpreter in an environment's folder.
const IN_ENVIRONMENT: [&str; 2] = if cfg!(windows) {
    ["Scripts\\python.exe", "python.exe"]
} else {
    ["bin/python", "bin/python3"]
};

/// Names of the interpreter on `PATH`; the first one found counts.
const ON_PATH: [&str; 2] = if cfg!(windows) {
    ["python.exe", "python3.exe"]
} else {
    ["python3", "python"]
};

/// Finds the interpreter to run: the named one, else that of the active virtual or conda environment, else that of the
/// environment in which this program is installed, else `python3` or `python` on `PATH`.
///
/// # Errors
/// If the named one is not a file, or none is found.
pub fn find(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = named {
        return given(path);
    }
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        let environment = env::var_os(variable).filter(|folder| !folder.is_empty());
        if let Some(python) = environment.and_then(|folder| of_environment(Path::new(&folder))) {
            return Ok(python);
        }
    }
    own_environment()
        .or_else(|| ON_PATH.iter().find_map(|name| on_path(name)))
        .ok_or_else(|| {
            Failure::Input(
                "there is no Python here: no active environment, and neither python3 nor python on PATH; activate the \
                 environment that your training runs in, or name its Python with --python PATH"
                    .into(),
            )
        })
}

/// Finds the interpreter that a command runs in: itself if it is one, or the one that its first line names.
pub fn of_command(word: &OsStr) -> Option<PathBuf> {
    let path = Path::new(word);
    let name = path.file_name()?.to_str()?;
    let program = match path.components().count() {
        1 => on_path(name)?,
        _ => Some(path.to_owned()).filter(|path| path.is_file())?,
    };
    let version = name.strip_prefix("python").map(|rest| rest.trim_end_matches(".exe"));
    if version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.')) {
        return Some(program);
    }
    let mut head = [0; 1024];
    let read = File::open(&program).ok()?.read(&mut head).ok()?;
    interpreter(&String::from_utf8_lossy(&head[..read]))
}

/// Returns the Python that a script's first lines name: `#!/path/python`, or those that pip and uv write where the path is
/// too long or has a blank: `#!/bin/sh`, then `'''exec' "/path/python" "$0" "$@"`. `#!/usr/bin/env python` names no
/// interpreter of an environment.
fn interpreter(head: &str) -> Option<PathBuf> {
    let mut lines = head.strip_prefix("#!")?.lines();
    let first = lines.next()?.trim();
    let executed = lines
        .next()
        .and_then(|line| line.trim().strip_prefix("'''exec' ")?.split(" \"$0\"").next())
        .map(|path| path.trim_matches(['"', '\'']));
    let named = [executed, Some(first), first.split_whitespace().next()];
    let is_python = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str);
        path.is_absolute() && name.is_some_and(|name| name.starts_with("python")) && path.is_file()
    };
    named.into_iter().flatten().map(PathBuf::from).find(is_python)
}

/// Resolves the value of `--python`: a file, an environment's folder, or a name on `PATH`.
fn given(path: &Path) -> Result<PathBuf, Failure> {
    if path.is_dir() {
        if let Some(python) = of_environment(path) {
            return Ok(python);
        }
    } else if path.is_file() {
        return Ok(path.to_owned());
    } else if path.components().count() == 1
        && let Some(python) = on_path(&path.to_string_lossy())
    {
        return Ok(python);
    }
    Err(Failure::Input(format!(
        "--python {}: there is no Python; give the path of an interpreter, or the folder of an environment",
        path.display()
    )))
}

/// Returns the interpreter in an environment's folder.
fn of_environment(folder: &Path) -> Option<PathBuf> {
    IN_ENVIRONMENT
        .iter()
        .map(|name| folder.join(name))
        .find(|path| path.is_file())
}

/// Returns the interpreter of the virtual environment that contains this program, as installed by pip.
fn own_environment() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let environment = program.parent()?.parent()?;
    environment
        .join("pyvenv.cfg")
        .is_file()
        .then(|| of_environment(environment))?
}

fn on_path(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}
