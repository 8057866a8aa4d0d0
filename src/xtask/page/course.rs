//! Writes the course as one content-hashed file per language. Each file includes the language-independent parts, so
//! that a reader fetches only one.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::published::Published;
use crate::{Failure, root};

/// Languages, by folder name.
pub const LANGUAGES: [&str; 3] = ["en", "zh-CN", "zh-TW"];

/// Parts in the order of the course, by file name.
pub const PARTS: [&str; 4] = ["9", "11", "V", "L"];

/// Writes the languages and enters their names in the page.
pub fn write(page: &mut Published) -> Result<(), Failure> {
    for language in LANGUAGES {
        let text = whole(&root().join("src/app/course"), language)?.to_string();
        page.add(&format!("course/{language}.json"), text.as_bytes())?;
    }
    Ok(())
}

/// Combines the course in one language: `parts` unchanged, and `texts` by row.
///
/// # Errors
/// If a file is missing or malformed.
pub fn whole(folder: &Path, language: &str) -> Result<Value, Failure> {
    let read = |name: &str| -> Result<Value, Failure> {
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path).map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
        serde_json::from_str(&text).map_err(|e| Failure::new(format!("{}: {e}", path.display())))
    };
    let mut parts = Vec::new();
    let mut texts = Map::new();
    for part in PARTS {
        parts.push(read(&format!("parts/{part}.json"))?);
        texts.extend(object(read(&format!("{language}/{part}.json"))?));
    }
    texts.extend(object(read(&format!("{language}/words.json"))?));
    Ok(json!({ "parts": parts, "texts": texts }))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(entries) => entries,
        _ => Map::new(),
    }
}
