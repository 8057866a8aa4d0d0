//! Spool of records to send: one file each, written atomically.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::Destination;
use crate::records::{Checked, hex};

/// Folder of the records to send.
#[derive(Debug, Clone)]
pub struct Spool {
    folder: PathBuf,
}

/// A record in the spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Path of its file.
    pub path: PathBuf,
    /// ID of the record.
    pub id: String,
    /// Text of the record.
    pub text: String,
}

#[derive(Serialize, Deserialize)]
struct Content {
    to: String,
    id: String,
    record: Box<RawValue>,
}

impl Spool {
    /// Opens the spool in the user's data folder, and creates it if needed.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn open(data: &Path) -> io::Result<Self> {
        let folder = data.join("spool");
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// Folder of the spool.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds a record. When it returns the record is on disk.
    ///
    /// # Errors
    /// If it cannot be written; then no part of it remains.
    pub fn put(&self, to: &Destination, record: &Checked) -> io::Result<Waiting> {
        let content = Content {
            to: to.to_string(),
            id: record.id.clone(),
            record: RawValue::from_string(record.text.clone())?,
        };
        let text = serde_json::to_vec(&content)?;
        // The same record may wait for two servers.
        let server = hex(&Sha256::digest(&content.to)[..4]);
        let path = self.folder.join(format!("{}-{server}.json", record.id));
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)?;
        self.sync()?;
        Ok(Waiting {
            path,
            id: content.id,
            text: record.text.clone(),
        })
    }

    /// Records that wait for this server, by ID, and the paths of files that are not ours, which are skipped.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn waiting_for(&self, to: &Destination) -> io::Result<(Vec<Waiting>, Vec<PathBuf>)> {
        let mut paths = fs::read_dir(&self.folder)?
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<Vec<_>>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        let (mut waiting, mut unreadable) = (Vec::new(), Vec::new());
        for path in paths {
            let content = fs::read(&path)
                .ok()
                .and_then(|text| serde_json::from_slice::<Content>(&text).ok());
            match content {
                Some(content) if content.to == to.to_string() => waiting.push(Waiting {
                    path,
                    id: content.id,
                    text: content.record.get().to_owned(),
                }),
                Some(_) => {}
                None => unreadable.push(path),
            }
        }
        Ok((waiting, unreadable))
    }

    /// Removes an acknowledged record.
    ///
    /// # Errors
    /// If its file cannot be removed.
    pub fn done(&self, waiting: &Waiting) -> io::Result<()> {
        match fs::remove_file(&waiting.path) {
            // Another upload sent it at the same time.
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Moves a record that the server will never accept out of the spool, and returns its new path.
    ///
    /// # Errors
    /// If its file cannot be moved.
    pub fn put_aside(&self, waiting: &Waiting) -> io::Result<PathBuf> {
        let folder = self.folder.join("refused");
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.json", waiting.id));
        fs::write(&path, &waiting.text)?;
        self.done(waiting)?;
        Ok(path)
    }

    /// Syncs the folder, since a new name is only on disk once its folder is.
    fn sync(&self) -> io::Result<()> {
        if cfg!(unix) {
            File::open(&self.folder)?.sync_all()
        } else {
            Ok(())
        }
    }
}
