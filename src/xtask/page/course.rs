//! The course: one file for each language, under a name that changes with its content. What does not
//! depend on the language is in all of them, so that a reader fetches one file.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::published::Published;
use crate::{Failure, root};

/// Languages, by the names of their folders.
pub const LANGUAGES: [&str; 3] = ["en", "zh-CN", "zh-TW"];

/// Parts, in the order of the course, by the names of their files.
pub const PARTS: [&str; 4] = ["9", "11", "V", "L"];

/// Writes the languages and names them in the page.
pub fn write(page: &mut Published) -> Result<(), Failure> {
    for language in LANGUAGES {
        let text = whole(&root().join("src/app/course"), language)?.to_string();
        page.add(&format!("course/{language}.json"), text.as_bytes())?;
    }
    Ok(())
}

/// The course in one language: `parts` as they are, and `texts` by row.
///
/// # Errors
/// A file that is missing or not well formed.
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
