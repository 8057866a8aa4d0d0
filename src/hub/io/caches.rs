//! Caches of other libraries: those of Hugging Face's and of ModelScope's, which hold models that were downloaded.

use std::fs;
use std::path::{Path, PathBuf};

use crate::repository::Repository;

/// Folder of a repository's files in the cache of Hugging Face's libraries: `models--owner--name/snapshots/COMMIT`, where
/// `refs/BRANCH` holds the commit of a branch.
pub(super) fn of_hugging_face(cache: &Path, of: &Repository) -> Option<PathBuf> {
    let folder = cache.join(format!("models--{}", of.id.replace('/', "--")));
    let snapshots = folder.join("snapshots");
    let revision = of.revision.as_deref().unwrap_or("main");
    if revision.split('/').any(|part| part == ".." || part.is_empty()) {
        return None;
    }
    let commit = fs::read_to_string(folder.join("refs").join(revision)).ok();
    let of_branch = commit.map(|commit| snapshots.join(commit.trim()));
    let of_commit = || Some(snapshots.join(revision));
    of_branch.or_else(of_commit).filter(|folder| describes(folder))
}

/// Folder of a repository's files in ModelScope's cache: in the form of its library since 1.38, in that of older ones, which
/// wrote a dot as three underscores, and in their form without `models`.
pub(super) fn of_modelscope(cache: &Path, of: &Repository) -> Option<PathBuf> {
    let (owner, name) = (of.owner(), of.name());
    let older = name.replace('.', "___");
    let snapshots = cache.join("models").join(format!("{owner}--{name}")).join("snapshots");
    let revision = of.revision.as_deref().unwrap_or("master");
    let candidates = [
        snapshots.join(revision),
        cache.join("models").join(owner).join(name),
        cache.join("models").join(owner).join(&older),
        cache.join("hub").join("models").join(owner).join(&older),
        cache.join("hub").join(owner).join(&older),
        cache.join(owner).join(&older),
    ];
    candidates.into_iter().find(|folder| describes(folder))
}

/// Returns true for a folder with a file that describes a model or an adapter.
fn describes(folder: &Path) -> bool {
    ["config.json", "adapter_config.json"]
        .iter()
        .any(|file| folder.join(file).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_both_caches_are_found() {
        let root = tempfile::tempdir().expect("a folder");
        let of = Repository::parse("Qwen/Qwen2.5-VL-3B-Instruct").expect("it is an id");
        let other = Repository::parse("Qwen/Qwen2.5-VL-3B-Instruct@v2").expect("it is an id");
        let folder = root.path().join("models--Qwen--Qwen2.5-VL-3B-Instruct");
        let snapshot = folder.join("snapshots/0123");
        fs::create_dir_all(&snapshot).expect("it is made");
        fs::create_dir_all(folder.join("refs")).expect("it is made");
        fs::write(folder.join("refs/main"), "0123\n").expect("it is written");
        assert_eq!(of_hugging_face(root.path(), &of), None, "no file is there yet");
        fs::write(snapshot.join("config.json"), "{}").expect("it is written");
        assert_eq!(of_hugging_face(root.path(), &of), Some(snapshot));
        assert_eq!(of_hugging_face(root.path(), &other), None);

        let older = root.path().join("hub/models/Qwen/Qwen2___5-VL-3B-Instruct");
        fs::create_dir_all(&older).expect("it is made");
        fs::write(older.join("config.json"), "{}").expect("it is written");
        assert_eq!(of_modelscope(root.path(), &of), Some(older));
    }
}
