//! `vramscope serve backup`, `restore` and `prune`.
//!
//! A backup is a file of its own form, so that what SQLite kept is restored into PostgreSQL and back: gzip over lines of JSON,
//! a header, each token's hash, each record with the time at which it was received, and an end with their numbers, without
//! which a file was cut.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use super::Where;
use crate::failure::Failure;
use crate::output;
use crate::records::Checked;
use crate::server::store::{KeptToken, NewRecord, Store, StoreError};

const FORMAT: &str = "vramscope-backup";
const VERSION: u32 = 1;

/// Records that are read, or written in one transaction, at a time.
const AT_A_TIME: usize = 100;

/// A line of a backup.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Header {
        format: String,
        version: u32,
    },
    Token(KeptToken),
    Record {
        received_ms: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quarantine: Option<String>,
        text: String,
    },
    End {
        tokens: u64,
        records: u64,
    },
}

/// Write all records and tokens' hashes to a file, while the server runs or not
#[derive(Debug, Args)]
pub struct Backup {
    /// The file; one that is there is replaced once the new one is whole
    file: PathBuf,
    #[command(flatten)]
    database: Where,
}

/// Add the records and tokens of a backup to a database, of the same kind or another; what it has stays
#[derive(Debug, Args)]
pub struct Restore {
    /// The file that `backup` wrote
    file: PathBuf,
    #[command(flatten)]
    database: Where,
}

/// Remove the records that were received too long ago
#[derive(Debug, Args)]
pub struct Prune {
    /// Days that a record is kept
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    older_than: u32,
    #[command(flatten)]
    database: Where,
}

impl Backup {
    /// Writes the file.
    ///
    /// # Errors
    /// If the database or the file cannot be used.
    pub fn run(self) -> Result<(), Failure> {
        let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let failed = |error: &dyn std::fmt::Display| Failure::Broken(format!("{}: {error}", self.file.display()));
        // Readable by its owner alone, as the database is.
        let made = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(|error| failed(&error))?;
        let mut out = GzEncoder::new(BufWriter::new(made), Compression::default());
        let written = self.database.with(async |store| match write(store, &mut out).await {
            Ok(written) => Ok(Ok(written)),
            Err(Trouble::Write(error)) => Ok(Err(error)),
            Err(Trouble::Store(error)) => Err(error),
        })?;
        let written = written.map_err(|error| failed(&error))?;
        let made = out
            .finish()
            .and_then(|buffer| buffer.into_inner().map_err(std::io::IntoInnerError::into_error));
        let made = made.map_err(|error| failed(&error))?;
        made.as_file().sync_all().map_err(|error| failed(&error))?;
        made.persist(&self.file).map_err(|error| failed(&error))?;
        output::print(&format!("{written} records are in {}\n", self.file.display()))
    }
}

/// An error of writing or of the database.
enum Trouble {
    Write(std::io::Error),
    Store(StoreError),
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self::Write(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Writes all lines; returns how many records there are.
async fn write(store: &Store, out: &mut impl Write) -> Result<u64, Trouble> {
    let mut line = |line: &Line| -> Result<(), Trouble> {
        serde_json::to_writer(&mut *out, line).map_err(std::io::Error::from)?;
        Ok(out.write_all(b"\n")?)
    };
    line(&Line::Header {
        format: FORMAT.to_owned(),
        version: VERSION,
    })?;
    let tokens = store.kept_tokens().await?;
    let count = tokens.len() as u64;
    for token in tokens {
        line(&Line::Token(token))?;
    }
    let (mut last, mut records) = (0, 0);
    loop {
        let some = store.kept_after(last, AT_A_TIME as i64).await?;
        let Some(newest) = some.last() else { break };
        (last, records) = (newest.seq, records + some.len() as u64);
        for record in some {
            line(&Line::Record {
                received_ms: record.received_ms,
                quarantine: record.quarantine,
                text: record.text,
            })?;
        }
    }
    line(&Line::End { tokens: count, records })?;
    Ok(records)
}

/// What a backup holds.
struct Contents {
    tokens: Vec<KeptToken>,
    records: Vec<(NewRecord, i64)>,
}

/// Reads and checks a whole backup, so that none is restored in part.
fn read(path: &Path) -> Result<Contents, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::Input(format!("{}: {why}", path.display()));
    let file = File::open(path).map_err(|error| wrong(&error))?;
    let mut contents = Contents {
        tokens: Vec::new(),
        records: Vec::new(),
    };
    let mut is_whole = false;
    for (at, line) in BufReader::new(MultiGzDecoder::new(file)).lines().enumerate() {
        let line = line.map_err(|error| wrong(&format!("not a backup, or cut: {error}")))?;
        let line: Line = serde_json::from_str(&line).map_err(|error| wrong(&format!("line {}: {error}", at + 1)))?;
        match line {
            Line::Header { format, version } if format == FORMAT && version == VERSION && at == 0 => {}
            Line::Header { version, .. } => {
                return Err(wrong(&format!(
                    "a backup of version {version}; this program reads version {VERSION}"
                )));
            }
            _ if at == 0 => return Err(wrong(&"not a backup of `vramscope serve backup`")),
            Line::Token(token) => contents.tokens.push(token),
            Line::Record {
                received_ms,
                quarantine,
                text,
            } => {
                let checked =
                    Checked::read(text.as_bytes()).map_err(|error| wrong(&format!("line {}: {error}", at + 1)))?;
                contents.records.push((NewRecord::of(checked, quarantine), received_ms));
            }
            Line::End { tokens, records } => {
                let found = (contents.tokens.len() as u64, contents.records.len() as u64);
                is_whole = (tokens, records) == found;
            }
        }
    }
    match is_whole {
        true => Ok(contents),
        false => Err(wrong(&"the backup was cut; nothing of it is restored")),
    }
}

impl Restore {
    /// Adds what the file holds.
    ///
    /// # Errors
    /// If the file is no whole backup, or the database cannot be used.
    pub fn run(self) -> Result<(), Failure> {
        let contents = read(&self.file)?;
        let (records, tokens) = self.database.with(async |store| {
            let mut new = 0;
            for some in contents.records.chunks(AT_A_TIME) {
                new += store.restore(some).await?;
            }
            let mut tokens = 0;
            for token in &contents.tokens {
                tokens += u64::from(store.restore_token(token).await?);
            }
            Ok((new, tokens))
        })?;
        let of = (contents.records.len(), contents.tokens.len());
        output::print(&format!(
            "{records} of {} records and {tokens} of {} tokens are new\n",
            of.0, of.1
        ))
    }
}

impl Prune {
    /// Removes what is too old.
    ///
    /// # Errors
    /// If the database cannot be used.
    pub fn run(self) -> Result<(), Failure> {
        let removed = self
            .database
            .with(async |store| store.prune_older_than(self.older_than).await)?;
        output::print(&format!("{removed} records were removed\n"))
    }
}
