//! `--data FILE`: the samples of a run, read from its dataset.

mod beside;
mod folder;
mod parquet;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use vramscope_dataset::{Dataset, Reader, Unread};
use vramscope_time::Feed;

use self::beside::Beside;
pub use self::beside::tokenizer_of;
use super::source::Source;
use crate::failure::Failure;

/// Bytes that are read at once.
const PIECE: usize = 1 << 18;
/// Forms that can be read.
const FORMS: &str = "JSON Lines, JSON, CSV, TSV (also as .gz) and Parquet";

/// What `--data` says: how long the run's own data takes to come, or the data itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Stages of loading, with their times.
    Feed(Feed),
    /// A file, or a folder of files.
    File(PathBuf),
}

impl Data {
    /// Parses a value of the flag.
    ///
    /// # Errors
    /// If it is stages, and one of them is not known.
    pub fn read(text: &str) -> Result<Self, String> {
        let is_stages = text.contains('=') && !Path::new(text).exists();
        match is_stages {
            true => Feed::read(text).map(Self::Feed),
            false => Ok(Self::File(text.into())),
        }
    }
}

/// Reads a dataset. Images are looked for by the paths that its records give, tokens are counted by the tokenizer in a
/// `tokenizer.json`.
///
/// # Errors
/// If it cannot be read, or tells nothing of any sample.
pub fn read(path: &Path, tokenizer: Option<&Path>) -> Result<Dataset, Failure> {
    if !path.exists() {
        return Err(Failure::Input(format!(
            "there is no file {}; --data takes the run's dataset, or how long it takes to come, such as \
             read=4,decode=9,workers=8",
            path.display()
        )));
    }
    let mut all = Dataset::default();
    for file in folder::files(path)? {
        let look = Box::new(Beside::of(&file, tokenizer)?);
        let read = match is_parquet(&file)? {
            true => parquet::read(&file, look)?,
            false => text(&file, Reader::looking(&named(&file), look))?,
        };
        let mut found = read.map_err(|why| Failure::Input(unread(&file, &why)))?;
        all.samples.append(&mut found.samples);
        if all.broken == 0 {
            all.first_broken = found.first_broken;
        }
        all.broken += found.broken;
    }
    Ok(all)
}

/// Parquet files begin with this, whatever they are called.
fn is_parquet(path: &Path) -> Result<bool, Failure> {
    let mut begin = [0; 4];
    let mut file = File::open(path).map_err(|error| cannot(path, &error))?;
    Ok(file.read_exact(&mut begin).is_ok() && &begin == b"PAR1")
}

fn text(path: &Path, mut reader: Reader) -> Result<Result<Dataset, Unread>, Failure> {
    let (mut input, _) = Source::File(path.to_owned()).unpacked()?;
    let mut piece = vec![0; PIECE];
    loop {
        match input.read(&mut piece).map_err(|error| cannot(path, &error))? {
            0 => return Ok(reader.finish()),
            count => reader.feed(&piece[..count]),
        }
    }
}

/// Name of a file without the ending of its compression, by which its form is told.
fn named(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(".gz").unwrap_or(&name).to_owned()
}

fn cannot(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Input(format!("cannot read {}: {error}", path.display()))
}

fn unread(path: &Path, why: &Unread) -> String {
    let path = path.display();
    match why {
        Unread::Empty => format!("{path} has no sample"),
        Unread::Binary => format!("{path} is no dataset that can be read; {FORMS} can"),
        Unread::Unknown(names) => format!(
            "no entry of {path} is known as text, as a number of tokens or as an image; its records have: {}",
            names.join(", ")
        ),
    }
}
