//! Finds the signs of every kind of evidence in a text: one search for the words of all kinds, then the regular expression
//! of each kind whose word a line has.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::kind::{self, Pattern};
use crate::paste::{Paste, is_quoted, may_quote};
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
/// Most lines that one pattern is tried on: the first ones, which hold the command and the versions, and the last ones, which
/// hold the error. A word such as `loss` is on every line of a log.
const FIRST_TRIED: usize = 256;
const LAST_TRIED: usize = 768;
/// Signs after which a pattern that yields only facts, wherever it matches, has nothing to add.
const ENOUGH: usize = 8;
/// Longest part of a line, and of the one below, that a pattern sees.
const BEFORE: usize = 1500;
const BEHIND: usize = 3000;

/// The words of all kinds, and what they belong to.
struct Words {
    search: AhoCorasick,
    /// Index of the pattern of each word.
    pattern_of: Vec<usize>,
    patterns: Vec<Owner>,
}

/// A pattern with what it belongs to.
struct Owner {
    kind: &'static str,
    /// Its index among the patterns of the kind.
    index: usize,
    pattern: &'static Pattern,
    /// True if it yields only facts, wherever it matches: no hypothesis and no words.
    is_of_facts: bool,
    regex: OnceLock<Option<Regex>>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let (mut words, mut pattern_of, mut patterns) = (Vec::new(), Vec::new(), Vec::new());
    for (name, kind) in kind::all() {
        for (index, pattern) in kind.sign.iter().enumerate() {
            words.extend(pattern.anchors.iter().map(String::as_str));
            pattern_of.resize(words.len(), patterns.len());
            patterns.push(Owner {
                kind: name,
                index,
                pattern,
                is_of_facts: !pattern.is_near && kind.words.is_empty(),
                regex: OnceLock::new(),
            });
        }
    }
    let search = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(words)
        .expect("a few thousand words");
    Words {
        search,
        pattern_of,
        patterns,
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

/// Lines that have a word of one pattern, by index, with the word's place in the line.
#[derive(Debug, Default)]
struct Tries {
    first: Vec<(usize, usize)>,
    last: VecDeque<(usize, usize)>,
    /// Line, and part of a long one, of the last hit: hits come in the order of the text.
    seen: Option<(usize, usize)>,
}

impl Tries {
    fn take(&mut self, index: usize, offset: usize, part: usize) {
        if self.seen.replace((index, part)) == Some((index, part)) {
            return;
        }
        if self.first.len() < FIRST_TRIED {
            self.first.push((index, offset));
            return;
        }
        if self.last.len() == LAST_TRIED {
            self.last.pop_front();
        }
        self.last.push_back((index, offset));
    }
}

/// Signs in a text, in the order of its lines.
pub fn signs(paste: &Paste<'_>) -> Vec<Sign> {
    let mut found: Vec<(usize, Sign)> = Vec::new();
    for (of, tries) in tries(paste).into_iter().enumerate() {
        let mut all: Vec<(usize, Sign)> = Vec::new();
        let owner = &WORDS.patterns[of];
        let places = tries.first.into_iter().chain(tries.last);
        for (index, offset) in places {
            if owner.is_of_facts && all.len() >= ENOUGH {
                break;
            }
            if owner.pattern.is_code && !is_in_traceback(paste, index) {
                continue;
            }
            let Some(values) = matched(paste, (index, offset), owner.pattern, &owner.regex) else {
                continue;
            };
            if all.len() == MOST_SIGNS {
                all.remove(MOST_SIGNS / 2);
            }
            let sign = Sign {
                kind: owner.kind.to_owned(),
                pattern: owner.index,
                line: paste.number(index),
                values,
            };
            all.push((index, sign));
        }
        found.append(&mut all);
    }
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, sign)| sign).collect()
}

/// Lines on which each pattern is tried.
fn tries(paste: &Paste<'_>) -> Vec<Tries> {
    let mut all: Vec<Tries> = WORDS.patterns.iter().map(|_| Tries::default()).collect();
    // A line has many words; its bounds, and whether it may quote data, are found once.
    let (mut index, mut start, mut end) = (0, 0, 0);
    let (mut line, mut is_doubtful) = ("", false);
    for hit in WORDS.search.find_overlapping_iter(&paste.text) {
        if hit.start() < start || hit.start() >= end {
            index = paste.index(hit.start());
            (start, end) = (paste.start(index), paste.start(index + 1));
            line = paste.line(index);
            is_doubtful = may_quote(line);
        }
        let offset = hit.start() - start;
        if is_doubtful && is_quoted(line, offset) {
            continue;
        }
        // A long line, such as JSON without breaks, is looked at around each hit.
        let part = if line.len() > BEHIND { offset / BEHIND } else { 0 };
        all[WORDS.pattern_of[hit.pattern().as_usize()]].take(index, offset, part);
    }
    all
}

/// Returns true if a line belongs to a traceback: it or one of the lines right above names a file and a line, or it is marked
/// as the one that failed.
fn is_in_traceback(paste: &Paste<'_>, index: usize) -> bool {
    let names_file = |line: &str| line.contains("File \"") || line.contains(".py:") || line.contains(".py\", line");
    let is_marked = |line: &str| line.trim_start().starts_with(['❱', '>']) || line.contains("--> ");
    is_marked(paste.line(index)) || (index.saturating_sub(4)..=index).any(|near| names_file(paste.line(near)))
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
