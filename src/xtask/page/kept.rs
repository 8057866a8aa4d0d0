//! Keeps compressed files from build to build, since compressing the page as far as it goes takes a minute.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use super::sha256;
use crate::target;

/// Returns the kept result of compressing `bytes`, or makes and keeps it. `form` names the format and its options.
///
/// # Errors
/// If it cannot be made, or a file cannot be written.
pub fn kept(form: &str, bytes: &[u8], make: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
    let digest: String = sha256(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let path = folder().join(format!("{digest}.{form}"));
    if let Ok(packed) = fs::read(&path) {
        File::options()
            .append(true)
            .open(&path)?
            .set_modified(SystemTime::now())?;
        return Ok(packed);
    }
    let packed = make()?;
    fs::create_dir_all(folder())?;
    // Another build may read the folder: give the file its name once it is whole.
    let part = path.with_extension(format!("{form}.{}", std::process::id()));
    fs::write(&part, &packed)?;
    fs::rename(part, path)?;
    Ok(packed)
}

/// Removes what no build has needed since `time`.
///
/// # Errors
/// If the folder cannot be read.
pub fn remove_unused_since(time: SystemTime) -> io::Result<()> {
    for entry in fs::read_dir(folder()).into_iter().flatten() {
        let entry = entry?;
        if entry.metadata()?.modified()? < time {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn folder() -> PathBuf {
    target().join("page/packed")
}
