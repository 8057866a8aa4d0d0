//! How results are shown: text for people, JSON for scripts.

mod ascii;
pub mod list;
pub mod target;
pub mod terminal;
pub mod text;

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;

use crate::failure::Failure;

/// The form of a result on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: bars, and colour where the terminal has it
    Text,
    /// One indented JSON document
    Json,
    /// One JSON object per line
    Jsonl,
}

/// Writes text for people, without its colours where standard output does not take them, in ASCII
/// where the locale is not UTF-8.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    if terminal::speaks_utf8() {
        write(text)
    } else {
        write(&ascii::fold(text))
    }
}

fn write(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes one indented JSON document.
///
/// # Errors
/// When standard output cannot be written.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::Broken(e.to_string()))?;
    write(&format!("{text}\n"))
}

/// Writes one JSON object on a line of its own, at once.
///
/// # Errors
/// When standard output cannot be written.
pub fn print_line(value: &impl Serialize) -> Result<(), Failure> {
    write(&format!("{}\n", to_json(value)?))
}

/// A JSON array on standard output, one element a line, each written at once.
#[derive(Debug, Default)]
pub struct JsonArray {
    begun: bool,
}

impl JsonArray {
    /// Writes an element.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn push(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let before = if self.begun { ",\n" } else { "[\n" };
        self.begun = true;
        write(&format!("{before}{}", to_json(value)?))
    }

    /// Ends the array; an empty one too.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn end(self) -> Result<(), Failure> {
        write(if self.begun { "\n]\n" } else { "[]\n" })
    }
}

fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::Broken(error.to_string()))
}
