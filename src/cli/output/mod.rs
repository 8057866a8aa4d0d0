//! Prints results: text for people, JSON for scripts.

mod ascii;
pub mod dataset;
pub mod list;
pub mod reports;
pub mod target;
pub mod terminal;
pub mod text;

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;

use crate::failure::Failure;

/// Format of a result on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: bars, and colour where the terminal has it
    Text,
    /// One indented JSON document
    Json,
    /// One JSON object per line
    Jsonl,
}

/// Prints text for people, without colours if standard output does not support them, and in ASCII if the locale is not
/// UTF-8.
///
/// # Errors
/// If standard output cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    if terminal::is_utf8_locale() {
        write(text)
    } else {
        write(&ascii::fold(text))
    }
}

/// Prints text that another program reads, as it is.
///
/// # Errors
/// If standard output cannot be written.
pub fn print_exactly(text: &str) -> Result<(), Failure> {
    write(text)
}

fn write(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Prints an indented JSON document.
///
/// # Errors
/// If standard output cannot be written.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Broken(error.to_string()))?;
    write(&format!("{text}\n"))
}

/// Prints a JSON object on its own line and flushes.
///
/// # Errors
/// If standard output cannot be written.
pub fn print_json_line(value: &impl Serialize) -> Result<(), Failure> {
    write(&format!("{}\n", to_json(value)?))
}

/// A JSON array on standard output, one element per line, each flushed immediately.
#[derive(Debug, Default)]
pub struct JsonArray {
    has_elements: bool,
}

impl JsonArray {
    /// Prints an element.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn push(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let before = if self.has_elements { ",\n" } else { "[\n" };
        self.has_elements = true;
        write(&format!("{before}{}", to_json(value)?))
    }

    /// Closes the array, which may be empty.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn close(self) -> Result<(), Failure> {
        write(if self.has_elements { "\n]\n" } else { "[]\n" })
    }
}

fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::Broken(error.to_string()))
}
