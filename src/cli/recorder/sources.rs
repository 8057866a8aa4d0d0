//! Python sources of the recorder, unpacked to a folder where Python can run them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// Contents of the files by their paths within the folder.
const FILES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/recorder.rs"));

/// Returns the folder of the sources; creates it on the first use of this version.
///
/// The folder lies in the user's cache, where Python can keep compiled files, or in the system's temporary folder if no
/// cache is writable.
///
/// # Errors
/// If neither folder is writable.
pub fn folder() -> Result<PathBuf, Failure> {
    let name = format!("recorder-{}-{}", env!("CARGO_PKG_VERSION"), digest());
    let caches = etcetera::choose_base_strategy().map(|base| base.cache_dir().join("vramscope"));
    let mut last = None;
    for parent in caches
        .into_iter()
        .chain([std::env::temp_dir().join(format!("vramscope-{}", owner()))])
    {
        match unpacked(&parent, &name) {
            Ok(folder) => return Ok(folder),
            Err(error) => last = Some(format!("{}: {error}", parent.display())),
        }
    }
    let why = last.unwrap_or_default();
    Err(Failure::Broken(format!(
        "the recorder cannot be unpacked ({why}); set XDG_CACHE_HOME or TMPDIR to a folder that can be written to"
    )))
}

/// Returns the folder of this name, written elsewhere and then moved, so that it never appears incomplete.
fn unpacked(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let place = parent.join(name);
    if complete(&place) {
        return Ok(place);
    }
    fs::create_dir_all(parent)?;
    let made = tempfile::Builder::new().prefix(".recorder-").tempdir_in(parent)?;
    for (path, text) in FILES {
        let path = made.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(parent))?;
        fs::write(path, text)?;
    }
    if fs::rename(made.path(), &place).is_err() {
        if !complete(&place) {
            // Replaces a folder whose files were changed.
            fs::remove_dir_all(&place)?;
            fs::rename(made.path(), &place)?;
        }
        return Ok(place);
    }
    // The folder was moved; nothing is left to remove.
    let _ = made.keep();
    Ok(place)
}

/// Returns true if every file matches the embedded one.
fn complete(folder: &Path) -> bool {
    let same = |(path, text): &(&str, &str)| fs::read_to_string(folder.join(path)).is_ok_and(|found| found == *text);
    FILES.iter().all(same)
}

/// Returns a hash of the sources, part of the folder's name.
fn digest() -> String {
    let mut hash = Sha256::new();
    for (path, text) in FILES {
        hash.update(path.as_bytes());
        hash.update([0]);
        hash.update(text.as_bytes());
        hash.update([0]);
    }
    hash.finalize()
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Returns the user's name, which keeps temporary folders of different users apart.
fn owner() -> String {
    let name = std::env::var("USER").or_else(|_| std::env::var("USERNAME"));
    let name = name.unwrap_or_else(|_| "user".into());
    name.chars().filter(|c| c.is_ascii_alphanumeric()).collect()
}
