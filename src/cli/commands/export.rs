//! `vramscope export`: writes records as files for a static web page.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use vramscope_benchmark::List;

use crate::commands::examples;
use crate::failure::Failure;
use crate::input::source::Source;
use crate::output;
use crate::records::Checked;

/// Write records as static files that a statically hosted page reads
///
/// Writes DIR/records.json, the list as GET /api/records gives it, and DIR/records/ID.json for each record,
/// of the given files or of a server's database. The page reads them from the folder `data` beside it. Records
/// that are no longer among them are taken away; other files are left alone.
#[derive(Debug, Args)]
#[command(after_help = examples(EXAMPLES))]
pub struct Export {
    /// Folder to write to, made where it is missing
    dir: PathBuf,
    /// Records; without any, all in the database but those in quarantine
    #[arg(value_name = "FILE", value_parser = Source::parse)]
    files: Vec<Source>,
    #[cfg(feature = "server")]
    #[command(flatten)]
    database: super::serve::Where,
}

const EXAMPLES: &str = "  vramscope export dist/data h200.json rtx-4090.json
      records beside a page, without any server
  vramscope export dist/data --database results.db
      all records of a server";

impl Export {
    /// Writes the files.
    ///
    /// # Errors
    /// If a record cannot be read, or a file cannot be written.
    pub fn run(self) -> Result<(), Failure> {
        let records = if self.files.is_empty() {
            self.stored()?
        } else {
            let mut records: Vec<Checked> = self.files.iter().map(read).collect::<Result<_, _>>()?;
            // Newest first, the order in which a server lists them.
            records.sort_by(|a, b| b.record.date.cmp(&a.record.date));
            records
        };
        write(&self.dir, &records).map_err(|error| Failure::Broken(format!("{}: {error}", self.dir.display())))?;
        output::print(&format!("{} records in {}\n", records.len(), self.dir.display()))
    }

    #[cfg(feature = "server")]
    fn stored(&self) -> Result<Vec<Checked>, Failure> {
        let texts = self.database.with(async |store| store.all().await)?;
        let read = |text: String| Checked::read(text.as_bytes()).map_err(Failure::broken);
        texts.into_iter().map(read).collect()
    }

    #[cfg(not(feature = "server"))]
    fn stored(&self) -> Result<Vec<Checked>, Failure> {
        Err(Failure::Input(
            "name the files of the records; this vramscope was built without a server".into(),
        ))
    }
}

fn read(source: &Source) -> Result<Checked, Failure> {
    let mut text = Vec::new();
    source
        .open()?
        .read_to_end(&mut text)
        .map_err(|error| source.unreadable(&error))?;
    Checked::read(&text).map_err(|refused| Failure::Input(format!("{source}: {refused}")))
}

/// Writes records first, then the list that names them, and finally removes records that it no longer names: at every
/// moment a reader finds all records of its list.
fn write(dir: &Path, records: &[Checked]) -> io::Result<()> {
    let folder = dir.join("records");
    fs::create_dir_all(&folder)?;
    let mut list = List::default();
    let mut written = BTreeSet::new();
    for record in records {
        if written.insert(record.id.as_str()) {
            put(&folder, &format!("{}.json", record.id), record.text.as_bytes())?;
            list.records.push(record.entry());
        }
    }
    put(dir, "records.json", &serde_json::to_vec(&list)?)?;
    for file in fs::read_dir(&folder)? {
        let path = file?.path();
        let id = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".json"));
        let is_record = |id: &&str| id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit());
        if id.filter(is_record).is_some_and(|id| !written.contains(id)) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Writes a file atomically, with permissions that let a web server read it.
fn put(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(content)?;
    file.persist(folder.join(name)).map_err(|error| error.error)?;
    Ok(())
}
