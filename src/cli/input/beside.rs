//! Finds the files that a launch names: beside it, in the folder of the command, and in the folders above up to that of the
//! repository.

use std::fs;
use std::path::{Path, PathBuf};

use vramscope_launch::{MOST_BYTES, Source as LaunchSource, named};

use super::source::Source;
use crate::failure::Failure;

/// Files that name files that name files, and so on, are followed this far.
const MOST_ROUNDS: usize = 8;
/// Folders above a file in which what it names is looked for.
const MOST_ABOVE: usize = 6;

/// Names and texts of the files of a launch: those given, and behind them those that they name and that are there. Which
/// were found is noted on standard error.
///
/// # Errors
/// If a file that is given can't be read.
pub fn with_files_beside(given: &[Source]) -> Result<Vec<(String, String)>, Failure> {
    let all = given.iter().map(|source| Ok((source.to_string(), source.read_text()?)));
    let mut all = all.collect::<Result<Vec<_>, Failure>>()?;
    let folders = folders(given);
    for _ in 0..MOST_ROUNDS {
        let sources: Vec<LaunchSource<'_>> = all.iter().map(|(name, text)| LaunchSource { name, text }).collect();
        let found: Vec<(String, String)> = named(&sources).iter().filter_map(|path| find(path, &folders)).collect();
        let is_new = |(name, _): &(String, String)| all.iter().all(|(own, _)| own != name);
        let found: Vec<_> = found.into_iter().filter(is_new).collect();
        if found.is_empty() {
            break;
        }
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        anstream::eprintln!("note: read too, since the launch names it: {}", names.join(", "));
        all.extend(found);
    }
    Ok(all)
}

/// Folders in which files are looked for, the most likely first.
fn folders(given: &[Source]) -> Vec<PathBuf> {
    let mut out = vec![PathBuf::new()];
    for source in given {
        let Source::File(path) = source else { continue };
        let own = path.parent().unwrap_or(Path::new(""));
        out.push(own.to_owned());
        let Ok(absolute) = fs::canonicalize(if own.as_os_str().is_empty() {
            Path::new(".")
        } else {
            own
        }) else {
            continue;
        };
        for folder in absolute.ancestors().take(MOST_ABOVE) {
            out.push(folder.to_owned());
            if folder.join(".git").exists() {
                break;
            }
        }
    }
    out
}

/// Name and text of the file that a path means. Of a path from another machine the end counts, with one folder at least.
fn find(path: &str, folders: &[PathBuf]) -> Option<(String, String)> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let shortest = parts.len().min(2);
    let ends = (0..=parts.len() - shortest).map(|at| parts[at..].join("/"));
    let mut candidates = ends.flat_map(|end| folders.iter().map(move |folder| folder.join(&end)));
    let file = candidates
        .find(|file| fs::metadata(file).is_ok_and(|data| data.is_file() && data.len() <= MOST_BYTES as u64))?;
    let text = fs::read(&file).ok()?;
    Some((file.display().to_string(), String::from_utf8_lossy(&text).into_owned()))
}
