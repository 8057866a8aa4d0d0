//! The files of another commit, beside those that are checked.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::failure::Failure;

/// Variables of git that a hook runs with: they would lead its commands to the index of the commit that is being made.
const OF_A_HOOK: [&str; 4] = ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX"];

/// The files of a commit, in a folder of their own that goes with it: a launch names files beside it, which have to be those of
/// the same commit.
pub struct Base {
    folder: TempDir,
    /// The repository's own folder.
    top: PathBuf,
}

impl Base {
    /// Writes the files of a commit of the repository that the working folder is in. Neither the repository's index nor its
    /// list of work trees is touched.
    ///
    /// # Errors
    /// If there is no git or no repository, or the commit is not in it.
    pub fn of(commit: &str) -> Result<Self, Failure> {
        let top = git(Path::new("."), &["rev-parse", "--show-toplevel"], None)?;
        let top = PathBuf::from(top.trim_end_matches(['\n', '\r']));
        // Without `--end-of-options` a name that begins with a dash would be an option.
        let named = ["rev-parse", "--verify", "--quiet", "--end-of-options"];
        let revision = format!("{commit}^{{commit}}");
        let revision = git(&top, &[&named[..], &[revision.as_str()]].concat(), None).map_err(|_| {
            Failure::Input(format!(
                "--base {commit}: the repository has no such commit; in continuous integration it may have to be fetched first \
                 (`git fetch --depth=1 origin {commit}`)"
            ))
        })?;
        let folder = tempfile::Builder::new().prefix("vramscope-base-").tempdir()?;
        let index = folder.path().join("index");
        let files = folder.path().join("files");
        git(&top, &["read-tree", revision.trim()], Some(&index))?;
        let prefix = format!("--prefix={}/", files.display());
        // Large files stay the pointers that they are in the commit: no launch file is one.
        let no_large = [
            "-c",
            "filter.lfs.smudge=",
            "-c",
            "filter.lfs.process=",
            "-c",
            "filter.lfs.required=false",
        ];
        let all = [&no_large[..], &["checkout-index", "--all", "--quiet", prefix.as_str()]].concat();
        git(&top, &all, Some(&index))?;
        Ok(Self { folder, top })
    }

    /// Returns the failure with the paths of its files in the commit: the temporary folder means nothing to a reader, and is gone
    /// once the command ends.
    pub fn named(&self, failure: Failure) -> Failure {
        let folder = format!("{}/", self.folder.path().join("files").display());
        match failure {
            Failure::NotKnown(text) => Failure::NotKnown(text.replace(&folder, "")),
            Failure::Input(text) => Failure::Input(text.replace(&folder, "")),
            other => other,
        }
    }

    /// Returns the file of the commit that has the place of this one; `None` if the commit has none.
    ///
    /// # Errors
    /// If this file is not of the repository.
    pub fn file(&self, name: &str) -> Result<Option<PathBuf>, Failure> {
        let path = std::path::absolute(name)?;
        // The folder is resolved as git resolves it; the file itself may be gone.
        let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
        let path = match (parent, path.file_name()) {
            (Some(parent), Some(file)) => parent.join(file),
            _ => path,
        };
        let top = self.top.canonicalize().unwrap_or_else(|_| self.top.clone());
        let inside = path.strip_prefix(&top).map_err(|_| {
            Failure::Input(format!(
                "{name} is not a file of the repository {}, which --base is of",
                top.display()
            ))
        })?;
        let before = self.folder.path().join("files").join(inside);
        Ok(before.is_file().then_some(before))
    }
}

/// Runs git in a folder and returns what it prints.
fn git(folder: &Path, args: &[impl AsRef<OsStr>], index: Option<&Path>) -> Result<String, Failure> {
    let mut command = Command::new("git");
    OF_A_HOOK.iter().for_each(|variable| {
        command.env_remove(variable);
    });
    if let Some(index) = index {
        command.env("GIT_INDEX_FILE", index);
    }
    let failed = |error| Failure::Broken(format!("--base needs git, which does not start: {error}"));
    let done = command.arg("-C").arg(folder).args(args).output().map_err(failed)?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(Failure::Input(format!(
            "--base: {}",
            String::from_utf8_lossy(&done.stderr).trim()
        ))),
    }
}
