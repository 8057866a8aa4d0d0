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
    let text = serde_json::to_string(value).map_err(|e| Failure::Broken(e.to_string()))?;
    write(&format!("{text}\n"))
}
