//! The languages of the page, and the phrases in `locales/`: for the build script, which gives each one a Rust name, and
//! for `cargo xtask build`, which packs each language for download. A phrase names its gaps: `{{ card }}`.

#![allow(clippy::disallowed_methods, reason = "a build script and xtask run natively")]

mod english;
mod fill;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

pub use english::english;
use fill::pieces;
pub use fill::{fill, fill_by_name, gaps};

/// A language of the page.
#[derive(Debug)]
pub struct Language {
    /// BCP 47 tag, and name of the folder in `locales/`.
    pub tag: &'static str,
    /// Name of the language in itself.
    pub name: &'static str,
    /// Subtags in lower case that tell this language from others with the same first subtag; the first language of those
    /// serves all else.
    pub subtags: &'static [&'static str],
    /// Units of large counts, the largest first; those of English if there are none.
    pub units: &'static [(&'static str, f64)],
    /// True if it is still being translated: English stands in for what it lacks.
    pub is_partial: bool,
}

/// All languages, in the order of the menu. The first one has every phrase.
pub const LANGUAGES: &[Language] = &[
    Language::new("en", "English"),
    Language {
        subtags: &["hans"],
        units: &[("亿", 1e8), ("万", 1e4)],
        ..Language::new("zh-CN", "简体中文")
    },
    Language {
        subtags: &["hant", "tw", "hk", "mo"],
        units: &[("億", 1e8), ("萬", 1e4)],
        ..Language::new("zh-TW", "繁體中文")
    },
];

impl Language {
    /// A whole language with English units.
    const fn new(tag: &'static str, name: &'static str) -> Self {
        Self {
            tag,
            name,
            subtags: &[],
            units: &[],
            is_partial: false,
        }
    }

    /// Path of a file of this language in `locales/`; that of English if the language lacks it and may.
    pub fn file(&self, locales: &Path, name: &str) -> PathBuf {
        let own = locales.join(self.tag).join(name);
        if self.is_partial && !own.exists() {
            return locales.join(LANGUAGES[0].tag).join(name);
        }
        own
    }
}

/// One phrase, in every language.
pub struct Phrase {
    /// File that holds the phrase, without extension.
    pub subject: String,
    /// Key in that file.
    pub key: String,
    /// Placeholders in alphabetical order; `{{ name }}` in a text.
    pub gaps: Vec<String>,
    /// Texts in the order of [`LANGUAGES`].
    pub texts: Vec<String>,
}

/// Reads all phrases below a folder, sorted by subject and key. Folders within a language's hold the words of other
/// programs.
///
/// # Errors
/// Fails if a file is not an object of strings, a language lacks a phrase, or a text has a stray brace or a line break.
pub fn read(locales: &Path) -> Result<Vec<Phrase>, String> {
    let mut found: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (place, language) in LANGUAGES.iter().enumerate() {
        let folder = locales.join(language.tag);
        let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|e| e.to_string())?.path();
            if path.is_dir() {
                continue;
            }
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
        for (key, title) in course_titles(&folder.join("course"))? {
            let texts = found.entry((LESSON.to_owned(), key)).or_default();
            texts.resize(place, String::new());
            texts.push(title);
        }
    }
    found.into_iter().map(|(name, texts)| phrase(name, texts)).collect()
}

/// Titles of the course's pages, which links to them say on other pages too: `row_9_attn` for the page `9.attn`.
fn course_titles(folder: &Path) -> Result<Vec<(String, String)>, String> {
    let mut titles = Vec::new();
    // A tree of phrases without a course has no titles.
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(titles);
    };
    for entry in entries {
        let path = entry.map_err(|e| e.to_string())?.path();
        let wrong = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        let text = std::fs::read_to_string(&path).map_err(|e| wrong(&e))?;
        let rows: Map<String, Value> = serde_json::from_str(&text).map_err(|e| wrong(&e))?;
        let titled = rows.into_iter().filter_map(|(id, row)| {
            let title = row.get("title")?.as_str()?.to_owned();
            Some((format!("row_{}", id.replace('.', "_")), title))
        });
        titles.extend(titled);
    }
    Ok(titles)
}

fn phrase((subject, key): (String, String), mut texts: Vec<String>) -> Result<Phrase, String> {
    let wrong = |what: &str| format!("{subject}.{key}: {what}");
    texts.resize(LANGUAGES.len(), String::new());
    for place in 0..texts.len() {
        if texts[place].is_empty() && LANGUAGES[place].is_partial {
            texts[place] = texts[0].clone();
        }
        if texts[place].is_empty() {
            return Err(wrong(&format!("{} lacks it", LANGUAGES[place].tag)));
        }
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
    let (pieces, last) = pieces(text);
    pieces.map(|(text, _)| text).collect::<String>() + last
}

/// Subject of the titles of the course's pages.
const LESSON: &str = "lesson";

/// Packs the phrases of one language, given by its index in [`LANGUAGES`]: one per line, placeholders as `{0}`.
pub fn packed(phrases: &[Phrase], language: usize) -> String {
    let line = |phrase: &Phrase| {
        let (pieces, last) = pieces(&phrase.texts[language]);
        let filled = pieces.map(|(text, gap)| {
            let place = phrase.gaps.iter().position(|name| name == gap);
            format!("{text}{{{}}}", place.unwrap_or_default())
        });
        filled.collect::<String>() + last
    };
    phrases.iter().map(line).collect::<Vec<_>>().join("\n")
}
