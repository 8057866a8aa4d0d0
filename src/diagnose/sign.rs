//! Finds the signs of every kind of evidence in a text: one search for the words of all kinds, then the regular expression
//! of each kind whose word a line has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::kind::{self, Pattern};
use crate::paste::{Paste, is_told};
use crate::text::window;

/// A sign: a place where a text matches a pattern of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sign {
    /// Name of the kind.
    pub kind: String,
    /// Index of its pattern.
    pub pattern: usize,
    /// Number of the line.
    pub line: usize,
    /// What the named groups of the pattern captured.
    pub values: BTreeMap<String, String>,
}

/// Most signs that are kept of one pattern; of more, the first and the last ones.
const MOST_SIGNS: usize = 64;
/// Most lines that one pattern is tried on.
const MOST_TRIED: usize = 5_000;
/// Signs after which a pattern that shows facts alone, wherever it stands, has nothing more to say.
const ENOUGH: usize = 8;
/// Longest part of a line, and of the one below, that a pattern sees.
const BEFORE: usize = 1500;
const BEHIND: usize = 3000;

/// The words of all kinds, and what they belong to.
struct Words {
    search: AhoCorasick,
    /// Kind and pattern of each word.
    owners: Vec<(&'static str, usize, &'static Pattern)>,
    /// Index of the regular expression of each word's pattern.
    regex_of: Vec<usize>,
    regexes: Vec<OnceLock<Option<Regex>>>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let (mut words, mut owners, mut regex_of, mut patterns) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for (name, kind) in kind::all() {
        for (i, pattern) in kind.sign.iter().enumerate() {
            for anchor in &pattern.anchors {
                words.push(anchor.as_str());
                owners.push((name.as_str(), i, pattern));
                regex_of.push(patterns);
            }
            patterns += 1;
        }
    }
    let search = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(words)
        .expect("a few thousand words");
    Words {
        search,
        owners,
        regex_of,
        regexes: (0..patterns).map(|_| OnceLock::new()).collect(),
    }
});

/// Compiles a pattern's expression.
///
/// # Errors
/// If it is none.
pub fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    // Chinese has no blanks between words: `OOM` begins a word in 微调OOM too.
    let pattern = pattern.replace(r"\b", r"(?-u:\b)");
    regex::RegexBuilder::new(&pattern)
        .case_insensitive(true)
        .size_limit(4 << 20)
        .build()
}

/// Returns true if a line has a word of a kind of evidence, or what a log of memory has.
pub fn has_word(line: &[u8]) -> bool {
    WORDS.search.is_match(line)
}

/// Signs in a text, in the order of its lines.
pub fn signs(paste: &Paste<'_>) -> Vec<Sign> {
    let mut found: BTreeMap<usize, Vec<(usize, Sign)>> = BTreeMap::new();
    let mut tried: BTreeMap<usize, usize> = BTreeMap::new();
    let mut seen: BTreeSet<(usize, usize)> = BTreeSet::new();
    for hit in WORDS.search.find_overlapping_iter(&paste.text) {
        let word = hit.pattern().as_usize();
        let (kind, pattern_index, pattern) = WORDS.owners[word];
        let of = WORDS.regex_of[word];
        let index = paste.index(hit.start());
        // A long line, such as JSON without breaks, is looked at around each hit.
        let line = paste.line(index);
        let offset = hit.start() - paste.start(index);
        let part = if line.len() > BEHIND { offset / BEHIND } else { 0 };
        if is_told(line, offset) || !seen.insert((of, index * 4096 + part.min(4095))) {
            continue;
        }
        let is_of_facts = !pattern.is_near && kind::named(kind).is_some_and(|(_, kind)| kind.words.is_empty());
        if is_of_facts && found.get(&of).is_some_and(|all| all.len() >= ENOUGH) {
            continue;
        }
        let count = tried.entry(of).or_default();
        *count += 1;
        if *count > MOST_TRIED {
            continue;
        }
        let Some(values) = matched(paste, (index, offset), pattern, &WORDS.regexes[of]) else {
            continue;
        };
        let sign = Sign {
            kind: kind.to_owned(),
            pattern: pattern_index,
            line: paste.number(index),
            values,
        };
        let all = found.entry(of).or_default();
        if all.len() == MOST_SIGNS {
            all.remove(MOST_SIGNS / 2);
        }
        all.push((index, sign));
        if seen.len() > 1 << 20 {
            seen.clear();
        }
    }
    let mut all: Vec<(usize, Sign)> = found.into_values().flatten().collect();
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, sign)| sign).collect()
}

/// Values of a pattern around a word; `None` if it does not match there.
fn matched(
    paste: &Paste<'_>,
    (index, offset): (usize, usize),
    pattern: &Pattern,
    compiled: &OnceLock<Option<Regex>>,
) -> Option<BTreeMap<String, String>> {
    let Some(expression) = &pattern.regex else {
        return Some(BTreeMap::new());
    };
    let regex = compiled.get_or_init(|| compile(expression).ok()).as_ref()?;
    let line = paste.line(index);
    let mut from = offset.saturating_sub(BEFORE);
    while !line.is_char_boundary(from) {
        from += 1;
    }
    let mut text = window(line, from, BEFORE + BEHIND).to_owned();
    if index + 1 < paste.len() {
        text.push(' ');
        text.push_str(window(paste.line(index + 1).trim_start(), 0, BEHIND));
    }
    let captures = regex.captures(&text)?;
    let names = regex.capture_names().flatten();
    let values = names.filter_map(|name| {
        let value = captures.name(name)?.as_str().trim();
        (!value.is_empty()).then(|| (name.to_owned(), crate::paste::masked(window(value, 0, 120))))
    });
    Some(values.collect())
}
