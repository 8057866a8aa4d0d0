//! Cache of what a hub answered: one JSON document for each repository and revision, written whole or not at all.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::inquiry::Description;
use crate::repository::{Hub, Repository};

/// How long an answer is used without asking whether it is still the same; a commit never changes.
const FRESH: Duration = Duration::from_hours(24);

/// Form of the documents; others are passed over.
const FORM: u32 = 1;

/// What a hub answered for a repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Stored {
    form: u32,
    /// When it was asked last, in seconds since 1970.
    asked_secs: u64,
    /// What it answered.
    #[serde(flatten)]
    pub description: Description,
}

impl Stored {
    /// An answer of now.
    pub fn new(description: Description) -> Self {
        Self {
            form: FORM,
            asked_secs: now_secs(),
            description,
        }
    }

    /// Returns true if it need not be asked again.
    pub fn is_fresh(&self) -> bool {
        let is_commit = self
            .description
            .revision
            .as_ref()
            .is_some_and(|of| of.len() == 40 && of.chars().all(|c| c.is_ascii_hexdigit()));
        is_commit || now_secs().saturating_sub(self.asked_secs) < FRESH.as_secs()
    }

    /// Days since it was asked.
    pub fn age_days(&self) -> u64 {
        now_secs().saturating_sub(self.asked_secs) / (24 * 3600)
    }
}

fn now_secs() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// The folder of the cache.
#[derive(Debug, Clone)]
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Reads what is stored of a repository; what cannot be read is not there.
    pub fn read(&self, of: &Repository, host: &str) -> Option<Stored> {
        let stored = read(&self.folder.join(Self::file_name(of, host)))?;
        let of_stored = &stored.description;
        (of_stored.id == of.id && of_stored.revision == of.revision && of_stored.host == host).then_some(stored)
    }

    /// Stores an answer in place of an older one.
    ///
    /// # Errors
    /// If it cannot be written; what was there stays.
    pub fn write(&self, of: &Repository, stored: &Stored) -> std::io::Result<()> {
        write_whole(
            &self.folder,
            &Self::file_name(of, &stored.description.host),
            serde_json::to_string(stored)?.as_bytes(),
        )
    }

    /// Everything that is stored, by id.
    pub fn all(&self) -> Vec<(PathBuf, Stored)> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut all: Vec<_> = paths
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .filter_map(|path| Some((path.clone(), read(&path)?)))
            .collect();
        all.sort_by(|(_, one), (_, other)| {
            let key = |stored: &'_ Stored| (stored.description.id.clone(), stored.description.revision.clone());
            key(one).cmp(&key(other))
        });
        all
    }

    fn file_name(of: &Repository, host: &str) -> String {
        let hub = match of.hub {
            Hub::HuggingFace => "",
            Hub::ModelScope => "modelscope",
        };
        let revision = of.revision.as_deref().unwrap_or_default();
        let name = format!("{host} {hub} {} {revision}", of.id);
        // A name that every file system takes: characters and case of ids and branches are escaped.
        let escaped: String = name
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' => char::from(byte).to_string(),
                b' ' => "+".to_owned(),
                _ => format!("_{byte:02x}"),
            })
            .collect();
        let cut: String = escaped.chars().take(180).collect();
        format!("{cut}.json")
    }
}

/// Writes a file so that a reader finds the whole of it or what was there before.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(folder.join(name)).map_err(|error| error.error)?;
    Ok(())
}

fn read(path: &Path) -> Option<Stored> {
    let stored: Stored = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    (stored.form == FORM).then_some(stored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inquiry::Inquiry;

    #[test]
    fn an_answer_is_stored_whole_and_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(folder.path());
        let of = Repository::parse("Qwen/Qwen3-8B@refs/pr/1").expect("it is an id");
        let main = Repository::parse("Qwen/Qwen3-8B").expect("it is an id");
        let stored = Stored::new(Inquiry::begin(&of, "https://hub", None).end());
        store.write(&of, &stored).expect("it is written");
        assert_eq!(store.read(&of, "hub"), Some(stored.clone()));
        assert!(stored.is_fresh());
        assert_eq!(store.read(&main, "hub"), None);
        assert_eq!(store.read(&of, "mirror"), None);
        assert_eq!(store.all().len(), 1);
        let (path, _) = &store.all()[0];
        fs::write(path, "{\"form\": 1, \"id\": \"Qwen/").expect("it is cut");
        assert_eq!(store.read(&of, "hub"), None);
        assert!(store.all().is_empty());
    }
}
