//! Writes the course as one content-hashed file per language. Each file includes the language-independent parts, so
//! that a reader fetches only one.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use vramscope_phrases::{LANGUAGES, Language};

use super::published::Published;
use super::words::{locales, short};
use crate::{Failure, root};

/// Attribute of the page that names the files of the course.
const COURSE: &str = " data-course";

/// Parts in the order of the course, by file name.
pub const PARTS: [&str; 4] = ["9", "11", "V", "L"];

/// Writes the languages and enters their names in the page.
pub fn write(page: &mut Published) -> Result<(), Failure> {
    let mut names = String::new();
    for language in LANGUAGES {
        let text = whole(&root().join("src/app/course"), language)?.to_string();
        let file = page.write(&format!("course/{}.json", language.tag), text.as_bytes())?;
        names += &format!(" data-course{}=\"{file}\"", short(language.tag));
    }
    page.expand(COURSE, &names)
}

/// Combines the course in one language: `parts` unchanged, and `texts` by row.
///
/// # Errors
/// If a file is missing or malformed.
pub fn whole(folder: &Path, language: &Language) -> Result<Value, Failure> {
    let read = |path: PathBuf| -> Result<Value, Failure> {
        let text = std::fs::read_to_string(&path).map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
        serde_json::from_str(&text).map_err(|e| Failure::new(format!("{}: {e}", path.display())))
    };
    let own = |name: &str| language.file(&locales(), &format!("course/{name}.json"));
    let mut parts = Vec::new();
    let mut texts = Map::new();
    for part in PARTS {
        parts.push(read(folder.join(format!("parts/{part}.json")))?);
        texts.extend(object(read(own(part))?));
    }
    texts.extend(object(read(own("words"))?));
    Ok(json!({ "parts": parts, "texts": texts }))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(entries) => entries,
        _ => Map::new(),
    }
}
