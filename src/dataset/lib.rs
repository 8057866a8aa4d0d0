//! How long the samples of a dataset are, and which images they have: read from a JSONL, JSON or CSV file piece by piece, or
//! record by record, by the page and by the command line.

mod look;
mod positions;
mod records;
mod sample;
mod summary;
mod table;
#[cfg(test)]
mod tests;

use records::Records;
use serde_json::{Map, Value};

pub use look::{Look, Nothing};
pub use positions::{ImageTokens, Positions};
pub use sample::{Sample, Text};
pub use summary::{Bin, Summary};
use table::Table;

/// Reasons why nothing can be told of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    /// It holds no record.
    Empty,
    /// It is neither a record a line, nor an array of records, nor columns; or it is compressed.
    Binary,
    /// No record has text, a number of tokens or an image under a name that is known; the names of the first record.
    Unknown(Vec<String>),
}

/// Samples of a file, as its records describe them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dataset {
    /// The samples, in the order of the file.
    pub samples: Vec<Sample>,
    /// Records that cannot be read.
    pub broken: u64,
    /// Number, from 1, of the first that cannot be read.
    pub first_broken: u64,
    /// Names of the entries of the first record that could be read.
    names: Vec<String>,
}

/// Form of a file.
enum Form {
    /// Not known before the first bytes.
    Unknown,
    /// JSON objects, a line each or in one array.
    Json(Records),
    /// Columns.
    Columns(Box<Table>),
    /// No text.
    Binary,
}

/// Reads a file piece by piece.
pub struct Reader {
    name: String,
    form: Form,
    found: Dataset,
    look: Box<dyn Look>,
}

impl Reader {
    /// Begins with a file of this name.
    pub fn new(name: &str) -> Self {
        Self::looking(name, Box::new(Nothing))
    }

    /// Begins with a file of this name, and looks up what its records do not say themselves.
    pub fn looking(name: &str, look: Box<dyn Look>) -> Self {
        Self {
            name: name.to_ascii_lowercase(),
            form: Form::Unknown,
            found: Dataset::default(),
            look,
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, mut piece: &[u8]) {
        if let Form::Unknown = self.form {
            // A byte order mark, and blank lines.
            while let [0xef | 0xbb | 0xbf | b' ' | b'\t' | b'\r' | b'\n', rest @ ..] = piece {
                piece = rest;
            }
            let Some(first) = piece.first() else { return };
            self.form = self.form_of(*first);
        }
        let (found, look) = (&mut self.found, &mut *self.look);
        match &mut self.form {
            Form::Unknown | Form::Binary => {}
            Form::Json(records) => records.feed(piece, &mut |record| found.take_json(record, look)),
            Form::Columns(table) => table.feed(piece, &mut |record| found.take(record, look)),
        }
    }

    /// Takes the next record of a file of another form, whose bytes somebody else reads; `None` for one that cannot be read.
    pub fn take(&mut self, record: Option<Map<String, Value>>) {
        if let Form::Unknown = self.form {
            self.form = Form::Json(Records::new(false));
        }
        self.found.take(record, &mut *self.look);
    }

    fn form_of(&self, first: u8) -> Form {
        let is_table = self.name.ends_with(".csv") || self.name.ends_with(".tsv");
        match first {
            b'{' | b'[' if !is_table => Form::Json(Records::new(first == b'[')),
            byte if !(b' '..0xf8).contains(&byte) => Form::Binary,
            _ if is_table => Form::Columns(Box::new(Table::new(self.name.ends_with(".tsv")))),
            // Plain lines that are no objects: each is a record that cannot be read.
            _ => Form::Json(Records::new(false)),
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If it tells nothing of any sample.
    pub fn finish(mut self) -> Result<Dataset, Unread> {
        let (found, look) = (&mut self.found, &mut *self.look);
        match &mut self.form {
            Form::Unknown => return Err(Unread::Empty),
            Form::Binary => return Err(Unread::Binary),
            Form::Json(records) => records.finish(&mut |record| found.take_json(record, look)),
            Form::Columns(table) => table.finish(&mut |record| found.take(record, look)),
        }
        match self.found {
            found if found.samples.is_empty() && found.broken == 0 => Err(Unread::Empty),
            found if found.samples.is_empty() => Err(Unread::Binary),
            found if found.samples.iter().all(Sample::is_empty) => Err(Unread::Unknown(found.names)),
            found => Ok(found),
        }
    }
}

impl Dataset {
    fn take_json(&mut self, record: Option<&[u8]>, look: &mut dyn Look) {
        // Surrogates without a partner and the like: what stands there does not matter.
        let text = record.map(String::from_utf8_lossy);
        let object = text.and_then(|text| match serde_json::from_str(&text) {
            Ok(Value::Object(object)) => Some(object),
            _ => None,
        });
        self.take(object, look);
    }

    fn take(&mut self, record: Option<Map<String, Value>>, look: &mut dyn Look) {
        let Some(record) = record else {
            self.broken += 1;
            if self.first_broken == 0 {
                self.first_broken = self.samples.len() as u64 + 1;
            }
            return;
        };
        if self.names.is_empty() {
            self.names = record.keys().take(12).cloned().collect();
        }
        self.samples.push(Sample::of(&record, look));
    }
}
