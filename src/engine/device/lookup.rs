//! Finding a card by what a person or a driver calls it.

use std::fmt;

use super::Device;
use crate::model::near;

/// No card, or several, have the given name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceError(pub String);

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DeviceError {}

/// Words that people leave out.
const OPTIONAL: [&str; 8] = [
    "nvidia", "geforce", "tesla", "amd", "radeon", "instinct", "apple", "rtx",
];

impl Device {
    /// The card of this name: a menu's, the driver's, or either without the maker's words, in any
    /// case and spacing. A name that begins just one card's is enough.
    ///
    /// # Errors
    /// When no card or several match; the message lists them.
    pub fn by_name(name: &str) -> Result<&'static Self, DeviceError> {
        let wanted = key(name);
        if let Some(exact) = Self::all().iter().find(|d| d.names().any(|n| key(n) == wanted)) {
            return Ok(exact);
        }
        let begun: Vec<&Self> = Self::all().iter().filter(|d| d.begins_with(&wanted)).collect();
        match begun.as_slice() {
            [only] => Ok(only),
            [] => Err(unknown(name)),
            several => Err(ambiguous(name, several)),
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.aliases.iter().map(String::as_str))
    }

    fn begins_with(&self, wanted: &str) -> bool {
        !wanted.is_empty() && self.names().any(|n| key(n).starts_with(wanted))
    }
}

/// A name without case, spacing and optional words.
fn key(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .map(|word| OPTIONAL.iter().fold(word, |w, o| w.strip_prefix(o).unwrap_or(w)))
        .collect()
}

fn ambiguous(name: &str, several: &[&Device]) -> DeviceError {
    let names: Vec<&str> = several.iter().map(|d| d.name.as_str()).collect();
    DeviceError(format!("\"{}\" may be any of: {}", shorten(name), names.join(", ")))
}

fn unknown(name: &str) -> DeviceError {
    let names: Vec<&str> = Device::all().iter().map(|d| d.name.as_str()).collect();
    let close = near(name, &names);
    let (label, list) = if close.is_empty() {
        ("known", names)
    } else {
        ("did you mean", close)
    };
    DeviceError(format!(
        "no card is named \"{}\"; {label}: {}",
        shorten(name),
        list.join(", ")
    ))
}

fn shorten(name: &str) -> String {
    name.chars().take(60).collect()
}
