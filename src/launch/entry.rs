//! Entries of a launch file: one key, its value, and where it stands.

use serde_json::Value;

/// One key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Key; of nested objects the whole path with dots.
    pub key: String,
    /// Value.
    pub value: Value,
    /// Line of the file or of the cell, from 1; the number of the word in a command.
    pub line: usize,
    /// Cell of a notebook, from 1; `None` in other files.
    pub cell: Option<usize>,
}

impl Entry {
    /// Returns where it stands, as a person would say it.
    pub fn place(&self) -> String {
        match self.cell {
            Some(cell) => format!("cell {cell}, line {}", self.line),
            None => format!("line {}", self.line),
        }
    }

    /// Returns the value as a person would write it.
    pub fn text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// Adds an entry, or one for each entry of an object, which tools also take as JSON within a text.
pub(crate) fn flatten(key: &str, value: Value, line: usize, out: &mut Vec<Entry>) {
    let object = value.as_str().filter(|text| text.trim_start().starts_with('{'));
    let object: Option<Value> = object.and_then(|text| serde_json::from_str(text).ok());
    match object.unwrap_or(value) {
        Value::Object(map) if !map.is_empty() => {
            for (inner, value) in map {
                flatten(&format!("{key}.{inner}"), value, line, out);
            }
        }
        value => out.push(Entry {
            key: key.to_owned(),
            value,
            line,
            cell: None,
        }),
    }
}
