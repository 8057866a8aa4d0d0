//! The Python that a dry run uses: the user's, or one of an environment that is made for it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::recorder;

/// Returns the Python of an environment with these packages, which is made on the first use and kept.
///
/// # Errors
/// If the packages do not go together, or cannot be had; the text says why.
pub fn with_packages(named: Option<&Path>, specs: &[String]) -> Result<PathBuf, Failure> {
    let python = recorder::find(named)?;
    let mut command = Command::new(&python);
    command.arg(recorder::folder()?).arg("environment").args(specs);
    // What is done goes to the terminal as it comes; the answer is all of its standard output.
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let failed = |error| Failure::Broken(format!("{} does not start: {error}", python.display()));
    let made = command.output().map_err(failed)?;
    let said = String::from_utf8_lossy(&made.stdout);
    match (made.status.code(), said.lines().last()) {
        (Some(0), Some(path)) => Ok(PathBuf::from(path)),
        (code, _) => Err(Failure::Told(
            code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
        )),
    }
}

/// Returns the Python to use without an environment of its own: the named one, that of the command, or the one at hand.
///
/// # Errors
/// If there is none.
pub fn at_hand(named: Option<&Path>, first: &OsStr) -> Result<PathBuf, Failure> {
    match (named, recorder::of_command(first)) {
        (None, Some(python)) => Ok(python),
        (named, _) => recorder::find(named),
    }
}

/// Returns the packages of `first`, with those of `second` in the place of what they name: `ms-swift==4.4` replaces
/// `ms-swift==4.6`.
pub fn replaced(first: &[String], second: &[String]) -> Vec<String> {
    let named: Vec<String> = second.iter().map(|spec| name(spec)).collect();
    let kept = first.iter().filter(|spec| !named.contains(&name(spec)));
    second.iter().chain(kept).cloned().collect()
}

/// The package that a requirement names, as pip compares names.
fn name(spec: &str) -> String {
    let end = spec.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
    spec[..end.unwrap_or(spec.len())]
        .to_ascii_lowercase()
        .replace(['_', '.'], "-")
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn another_version_takes_the_place_of_the_first() {
        let words = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let first = words(&["ms_swift==4.6", "transformers>=5"]);
        assert_eq!(
            replaced(&first, &words(&["ms-swift==4.4.2"])),
            words(&["ms-swift==4.4.2", "transformers>=5"])
        );
        assert_eq!(replaced(&[], &words(&["trl[vlm]"])), words(&["trl[vlm]"]));
    }
}
