//! Writes the service worker: `src/app/js/service-worker.js` with the list of files that it caches.

use std::path::Path;

use super::{EMBED, PAGE, SINGLE_FILE, packed, sha256};
use crate::Failure;

/// File name, which must never change: browsers look for updates at the same address.
const NAME: &str = "service-worker.js";

/// Writes the service worker into `dist`. Its version is a digest of the names and contents of all cached files, so
/// that it changes exactly when one of them does.
pub fn write(dist: &Path) -> Result<(), Failure> {
    let template = std::fs::read_to_string(super::scripts().join(NAME))?;
    std::fs::write(dist.join(NAME), with_files(&template, &kept(dist)?))?;
    Ok(())
}

fn with_files(template: &str, files: &[(String, Vec<u8>)]) -> String {
    let mut all = Vec::new();
    for (name, content) in files {
        all.extend(sha256(name));
        all.extend(sha256(content));
    }
    let version: String = sha256(all).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let names: Vec<_> = files.iter().map(|(name, _)| address(name)).collect();
    format!("const VERSION = \"{version}\";\nconst FILES = {names:?};\n\n{template}")
}

/// Address under which a file is cached. The page is cached as its folder: some hosts redirect `index.html` there, and
/// a redirected response may not answer a navigation.
fn address(name: &str) -> &str {
    if name == PAGE { "./" } else { name }
}

/// The files of the page, sorted, except files for other pages and records, which change independently.
fn kept(dist: &Path) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut files = Vec::new();
    collect(dist, "", &mut files)?;
    files.retain(|(name, _)| ![NAME, SINGLE_FILE, EMBED].contains(&name.as_str()) && !name.starts_with("data/"));
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, Vec<u8>)>) -> Result<(), Failure> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            collect(&path, &format!("{name}/"), files)?;
        } else if !packed::is_packed(&path) {
            files.push((name, std::fs::read(&path)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_kept_once() {
        let dist = std::env::temp_dir().join(format!("vramscope-kept-{}", std::process::id()));
        std::fs::create_dir_all(dist.join("words")).expect("a folder of the test's own");
        for name in [
            "words/en.txt",
            "words/en.txt.br",
            "words/en.txt.gz",
            PAGE,
            "index.html.br",
        ] {
            std::fs::write(dist.join(name), name).expect("a file");
        }
        let names: Vec<_> = kept(&dist)
            .expect("it is read")
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        std::fs::remove_dir_all(dist).expect("it is there");
        assert_eq!(names, [PAGE, "words/en.txt"]);
    }

    fn written(files: &[(&str, &str)]) -> String {
        let files: Vec<_> = files
            .iter()
            .map(|(n, c)| (n.to_string(), c.as_bytes().to_vec()))
            .collect();
        with_files("", &files)
    }

    #[test]
    fn the_version_changes_with_any_name_and_any_content() {
        let first = written(&[("a.js", "1"), (PAGE, "2")]);
        assert_eq!(first, written(&[("a.js", "1"), (PAGE, "2")]));
        let version = |text: &str| text.split('"').nth(1).map(str::to_owned);
        for other in [
            written(&[("a.js", "0"), (PAGE, "2")]),
            written(&[("b.js", "1"), (PAGE, "2")]),
            written(&[("a.js", "12"), (PAGE, "")]),
        ] {
            assert_ne!(version(&first), version(&other));
        }
        assert!(first.contains(r#"const FILES = ["a.js", "./"];"#), "{first}");
    }
}
