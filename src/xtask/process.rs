//! Runs other programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Failure, root, tools};

/// A command to run in the repository's root, with the local tools first on `PATH`.
pub fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root()).env("PATH", search_path());
    command
}

/// The cargo that runs this program.
pub fn cargo() -> Command {
    program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command to its end and shows its output.
pub fn run(command: &mut Command) -> Result<(), Failure> {
    let line = shown(command);
    eprintln!("$ {line}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(format!("`{line}` failed ({status})"))),
        Err(e) => Err(Failure::new(format!("`{line}` could not be started: {e}"))),
    }
}

/// Runs a command to its end, and shows its output then, so that commands side by side do not mix theirs.
pub fn run_captured(command: &mut Command) -> Result<(), Failure> {
    let line = shown(command);
    let out = command
        .output()
        .map_err(|e| Failure::new(format!("`{line}` could not be started: {e}")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    eprintln!("$ {line}\n{}{}", text(&out.stdout), text(&out.stderr));
    match out.status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!("`{line}` failed ({})", out.status))),
    }
}

/// Does two things at once.
///
/// # Errors
/// The failure of either, once both have ended.
pub fn beside<A: Send, B>(
    one: impl FnOnce() -> Result<A, Failure> + Send,
    other: impl FnOnce() -> Result<B, Failure>,
) -> Result<(A, B), Failure> {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        let one = one.join().unwrap_or_else(|_| Err(Failure::new("a thread panicked")));
        Ok((one?, other?))
    })
}

/// Output of a successful command; `None` if the program is missing or fails.
pub fn output(command: &mut Command) -> Option<String> {
    let out = command.stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    out.status.success().then(|| text.trim().to_owned())
}

/// Path of the first of `names` on the search path.
pub fn find(names: &[&str]) -> Option<PathBuf> {
    let path = search_path();
    names.iter().find_map(|name| {
        std::env::split_paths(&path)
            .map(|dir| dir.join(name))
            .find(|p| is_program(p))
    })
}

fn is_program(path: &Path) -> bool {
    path.is_file()
}

fn search_path() -> OsString {
    let system = std::env::var_os("PATH").unwrap_or_default();
    let dirs = tools::local_dirs().into_iter().chain(std::env::split_paths(&system));
    // A directory whose name contains the separator cannot be on `PATH`; keep the system's value then.
    std::env::join_paths(dirs).unwrap_or(system)
}

/// The command as people would type it. Of hundreds of files the first few are told, or a log would be these lists.
fn shown(command: &Command) -> String {
    const MOST: usize = 24;
    let all: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|w| w.to_string_lossy())
        .collect();
    match all.len().checked_sub(MOST) {
        Some(left) if left > 0 => format!("{} … ({left} more)", all[..MOST].join(" ")),
        _ => all.join(" "),
    }
}
