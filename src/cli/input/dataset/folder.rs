//! Files of a dataset that is a folder.

use std::path::{Path, PathBuf};

use super::FORMS;
use crate::failure::Failure;

/// Endings of files that hold samples.
const ENDS: [&str; 8] = [
    ".parquet",
    ".jsonl",
    ".ndjson",
    ".json",
    ".csv",
    ".tsv",
    ".jsonl.gz",
    ".json.gz",
];
/// Files that the libraries write beside those.
const BESIDE: [&str; 3] = ["dataset_info.json", "dataset_infos.json", "state.json"];

/// Returns the file itself, or those of a folder and of its `data` and `train`, sorted.
///
/// # Errors
/// If a folder cannot be read, or has none.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for folder in [path.to_owned(), path.join("data"), path.join("train")] {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        found.extend(
            entries
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| is_samples(path)),
        );
    }
    found.sort();
    match found.is_empty() {
        true => Err(Failure::Input(format!(
            "{} has no file of samples; {FORMS} can be read",
            path.display()
        ))),
        false => Ok(found),
    }
}

fn is_samples(path: &Path) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    path.is_file() && ENDS.iter().any(|end| name.ends_with(end)) && !BESIDE.contains(&&*name)
}
