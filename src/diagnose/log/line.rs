//! Parses one line of a training log.

use crate::amount::{amount, number, unit};
use vramscope_engine::units::Bytes;

/// Values found in one line.
#[derive(Debug, PartialEq)]
pub struct Line {
    pub step: Option<u64>,
    pub memory: Vec<Reading>,
    pub total: Option<Bytes>,
    pub length: Option<u64>,
}

/// An amount of memory and the words before it.
#[derive(Debug, PartialEq)]
pub struct Reading {
    pub key: String,
    pub bytes: Bytes,
    pub is_unit_guessed: bool,
}

/// Longest line in bytes that is searched; the rest of a longer one is ignored.
const LONGEST: usize = 4000;
/// Key of an amount that "memory is in use" follows.
const IN_USE: &str = "memory in use";
/// Longest key, in bytes.
const LONGEST_KEY: usize = 48;

/// A number in a line, with the words before it and the unit after it.
struct Written<'a> {
    key: String,
    value: f64,
    decimals: u32,
    /// Letters right after the number.
    unit: &'a str,
    /// What follows the unit.
    behind: &'a str,
    /// True if the number follows a `/`, so that the number before it is a part of this one.
    is_whole: bool,
}

/// Parses a line; `None` if it reports no memory.
pub fn read(line: &str) -> Option<Line> {
    let line = crate::text::window(line, 0, LONGEST);
    // Tables and errors have their own readers.
    let foreign = [
        "out of memory",
        "ried to allocate",
        "total capacity",
        "reserved by PyTorch",
        "_bytes.",
    ];
    if line.trim_start().starts_with(['|', '+']) || foreign.iter().any(|sign| line.contains(sign)) {
        return None;
    }
    let written = numbers(line);
    let step = step(&written).or_else(|| progress(line));
    let mut read = Line {
        step,
        memory: Vec::new(),
        total: None,
        length: None,
    };
    for (i, item) in written.iter().enumerate() {
        if is_length(&item.key) {
            read.length = Some(item.value as u64);
            continue;
        }
        let part_of_pair = item.is_whole && !read.memory.is_empty();
        let mut key = if item.is_whole && i > 0 {
            written[i - 1].key.as_str()
        } else {
            item.key.as_str()
        };
        let Some((bytes, is_unit_guessed)) = memory(item, key, written.get(i + 1), step.is_some()) else {
            continue;
        };
        // "5.05 GiB memory is still in use": the words follow.
        if key.is_empty() && item.behind.starts_with(" memory is") {
            key = IN_USE;
        }
        if part_of_pair || is_total(key) {
            read.total = Some(bytes);
        } else if !item.is_whole {
            read.memory.push(Reading {
                key: key.to_owned(),
                bytes,
                is_unit_guessed,
            });
        }
    }
    (!read.memory.is_empty()).then_some(read)
}

/// Every number that is not part of a word.
fn numbers(line: &str) -> Vec<Written<'_>> {
    let bytes = line.as_bytes();
    let mut found: Vec<Written> = Vec::new();
    let (mut at, mut last_end) = (0, 0);
    while at < bytes.len() {
        // `#147851` is an issue, and the 117 of `gpu_worker.py:117` a line of source.
        let in_word = at > 0
            && (bytes[at - 1].is_ascii_alphanumeric()
                || matches!(bytes[at - 1], b'_' | b'.' | b'#')
                || is_source(&bytes[..at]));
        let start = if bytes[at].is_ascii_digit() && !in_word {
            number(&line[at..])
        } else {
            None
        };
        let Some((value, decimals, len)) = start else {
            // A number inside a word is part of that word.
            at += 1;
            continue;
        };
        let rest = &line[at + len..];
        let word = rest.strip_prefix(' ').unwrap_or(rest);
        let letters = word.bytes().take_while(u8::is_ascii_alphabetic).count();
        let rate = word[letters..].starts_with('/') || word[letters..].starts_with("ps");
        let between = &line[last_end..at];
        found.push(Written {
            key: key(between),
            value,
            decimals,
            unit: if rate && found.is_empty() && unit(&word[..letters]).is_none() {
                ""
            } else {
                &word[..letters]
            },
            behind: &word[letters..],
            is_whole: between.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim() == "/",
        });
        at += len;
        last_end = at;
        if found.len() == 64 {
            break;
        }
    }
    found
}

/// Returns true if a text ends in the name of a source file and a colon.
fn is_source(before: &[u8]) -> bool {
    let Some(name) = before.strip_suffix(b":") else {
        return false;
    };
    [".py", ".cpp", ".cc", ".cu", ".h", ".c", ".rs", ".go"]
        .iter()
        .any(|end| name.ends_with(end.as_bytes()))
}

/// The words right before a number, without separators.
fn key(between: &str) -> String {
    let trimmed = between.trim_end_matches([':', '=', ' ', '"', '\'', '\t', '>', '~', '≈', '@']);
    let start = trimmed
        .rfind([',', '|', '{', '[', ';', '"', '\'', '=', ':', '%', '\t'])
        .map_or(0, |at| at + trimmed[at..].chars().next().map_or(1, char::len_utf8));
    let mut key = trimmed[start..].trim().to_lowercase();
    // Drop a unit that belongs to the previous number.
    if let Some((first, rest)) = key.split_once(' ')
        && unit(first).is_some()
    {
        key = rest.trim().to_string();
    }
    if key.len() > LONGEST_KEY {
        let mut from = key.len() - LONGEST_KEY;
        while !key.is_char_boundary(from) {
            from += 1;
        }
        key = key[from..].trim_start().to_string();
    }
    key
}

/// Returns true if a key names device memory.
fn is_memory(key: &str) -> bool {
    let words = || key.split(|c: char| !c.is_ascii_alphanumeric());
    let has = |word: &str| key.contains(word);
    let named = has("mem") || has("vram") || has("alloc") || has("reserved") || has("cached") || has("显存");
    // DeepSpeed's `see_memory_usage`: MA, Max_MA, CA, Max_CA.
    let short = words().any(|word| matches!(word, "ma" | "ca" | "gpu"));
    // Shares, limits and changes are no readings.
    const OTHERS: [&str; 20] = [
        "free",
        "avail",
        "cpu",
        "host",
        "percent",
        "delta",
        "count",
        "util",
        "ratio",
        "fraction",
        "share",
        "threshold",
        "grow",
        "increas",
        "saved",
        "saves",
        "need",
        "require",
        "limit",
        "at least",
    ];
    (named || short)
        && !words().any(|word| word == "ram")
        && !OTHERS.iter().any(|word| has(word))
        && !key.ends_with(" by")
}

fn is_total(key: &str) -> bool {
    key.contains("total") || key.contains("capacity")
}

fn is_length(key: &str) -> bool {
    [
        "seq_len",
        "seqlen",
        "seq len",
        "sequence length",
        "max_length",
        "num_tokens",
        "input_len",
        "tokens",
    ]
    .iter()
    .any(|word| key.ends_with(word))
}

/// The bytes of a number, and true if its unit is a guess. The unit follows the number or the whole that it is a part
/// of, or stands in its key, or is missing.
fn memory(item: &Written, key: &str, next: Option<&Written>, has_step: bool) -> Option<(Bytes, bool)> {
    let of_memory = is_memory(key) || key.is_empty() && item.behind.starts_with(" memory is");
    let behind = unit(item.unit).or_else(|| next.filter(|next| next.is_whole).and_then(|next| unit(next.unit)));
    let in_key = || {
        let mut words = key.split(|c: char| !c.is_ascii_alphanumeric()).rev();
        words.find_map(unit)
    };
    let (scale, is_guess) = match behind {
        // An amount without a key, in a line that reports a step.
        Some(scale) if of_memory || (has_step && scale > 1e6 && key.is_empty()) => (scale, false),
        Some(_) => return None,
        None if !of_memory || key.ends_with("gpu") || !item.unit.is_empty() => return None,
        None => match in_key() {
            Some(scale) => (scale, false),
            None => (likely_unit(item), true),
        },
    };
    let bytes = amount(item.value, item.decimals, scale)?.bytes;
    (bytes > Bytes::ZERO).then_some((bytes, is_guess))
}

/// Guesses the unit, in bytes, from the magnitude: bytes run to millions and more, MiB to hundreds, GiB to tens.
fn likely_unit(item: &Written) -> f64 {
    let bytes = match item.value {
        value if value >= 1e6 => 1,
        value if value >= 300.0 => 1 << 20,
        _ => 1 << 30,
    };
    f64::from(bytes)
}

fn step(written: &[Written]) -> Option<u64> {
    let is_step = |key: &str| {
        let last = key
            .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .next()
            .unwrap_or_default();
        matches!(
            last,
            "step" | "steps" | "iter" | "iteration" | "iterations" | "it" | "global_step" | "batch"
        )
    };
    let found = written.iter().find(|item| is_step(&item.key) && item.decimals == 0)?;
    Some(found.value as u64)
}

/// The step in tqdm's `100/1000 [`.
fn progress(line: &str) -> Option<u64> {
    line.match_indices('/').find_map(|(at, _)| {
        let digits = line[..at].bytes().rev().take_while(u8::is_ascii_digit).count();
        let rest = line[at + 1..].trim_start_matches(|c: char| c.is_ascii_digit());
        let is_bar = digits > 0 && rest.len() < line.len() - at - 1 && rest.trim_start().starts_with('[');
        line[at - digits..at].parse().ok().filter(|_| is_bar)
    })
}
