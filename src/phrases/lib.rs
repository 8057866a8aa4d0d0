//! Reads the phrases in `locales/`: for the build script, which gives each one a Rust name, and for `cargo xtask
//! build`, which packs each language for download.

#![allow(clippy::disallowed_methods, reason = "a build script and xtask run natively")]

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

/// Languages by folder name, in the order of a phrase's texts.
pub const LANGUAGES: [&str; 3] = ["en", "zh-CN", "zh-TW"];

/// One phrase, in every language.
pub struct Phrase {
    /// File that holds the phrase, without extension.
    pub subject: String,
    /// Key in that file.
    pub key: String,
    /// Placeholders in alphabetical order; `{{ name }}` in a text.
    pub gaps: Vec<String>,
    /// Texts in the order of [`LANGUAGES`].
    pub texts: [String; LANGUAGES.len()],
}

/// Reads all phrases below a folder, sorted by subject and key.
///
/// # Errors
/// Fails if a file is not an object of strings, a language lacks a phrase, or a text has a stray brace or a line break.
pub fn read(locales: &Path) -> Result<Vec<Phrase>, String> {
    let mut found: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (place, language) in LANGUAGES.iter().enumerate() {
        let folder = locales.join(language);
        let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|e| e.to_string())?.path();
            let wrong = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
            let subject = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).map_err(|e| wrong(&e))?;
            let phrases: Map<String, Value> = serde_json::from_str(&text).map_err(|e| wrong(&e))?;
            for (key, value) in phrases {
                let text = value.as_str().ok_or_else(|| wrong(&format!("`{key}` is not a text")))?;
                let texts = found.entry((subject.clone(), key)).or_default();
                texts.resize(place, String::new());
                texts.push(text.to_owned());
            }
        }
    }
    found.into_iter().map(|(name, texts)| phrase(name, texts)).collect()
}

fn phrase((subject, key): (String, String), texts: Vec<String>) -> Result<Phrase, String> {
    let wrong = |what: &str| format!("{subject}.{key}: {what}");
    let texts: [String; LANGUAGES.len()] = texts.try_into().map_err(|_| wrong("a language lacks it"))?;
    if texts.iter().any(String::is_empty) {
        return Err(wrong("a language lacks it"));
    }
    let mut gaps = Vec::new();
    for text in &texts {
        for piece in text.split("{{").skip(1) {
            let (gap, _) = piece.split_once("}}").ok_or_else(|| wrong("`{{` without `}}`"))?;
            gaps.push(gap.trim().to_owned());
        }
    }
    if texts.iter().any(|text| without_gaps(text).contains(['{', '}', '\n'])) {
        return Err(wrong("a brace or a line's end within the text"));
    }
    gaps.sort();
    gaps.dedup();
    Ok(Phrase {
        subject,
        key,
        gaps,
        texts,
    })
}

fn without_gaps(text: &str) -> String {
    let mut pieces = text.split("{{");
    let first = pieces.next().unwrap_or_default();
    pieces
        .filter_map(|piece| piece.split_once("}}"))
        .fold(first.to_owned(), |text, (_, rest)| text + rest)
}

/// Packs the phrases of one language, given by its index in [`LANGUAGES`]: one per line, placeholders as `{0}`.
#[allow(dead_code, reason = "the build script packs nothing")]
pub fn packed(phrases: &[Phrase], language: usize) -> String {
    let line = |phrase: &Phrase| {
        let mut pieces = phrase.texts[language].split("{{");
        let mut line = pieces.next().unwrap_or_default().to_owned();
        for (gap, rest) in pieces.filter_map(|piece| piece.split_once("}}")) {
            let place = phrase.gaps.iter().position(|name| name == gap.trim());
            line += &format!("{{{}}}{rest}", place.unwrap_or_default());
        }
        line
    };
    phrases.iter().map(line).collect::<Vec<_>>().join("\n")
}
