//! Variables and arguments, with what `${…}` makes of them.

use super::expand::Fields;
use super::interpret::Shell;
use super::lexer::span;
use super::pattern::{replaced, without_beginning, without_end};
use super::state::{State, Value};
use super::{UNSET, is_name, is_open, marked, open};

/// What a variable holds.
enum Held {
    /// One text, or several that `@` and `*` give.
    Texts(Vec<String>, bool),
    Unset,
    /// Nobody knows; the text stands for it.
    Open(String),
}

impl Held {
    fn one(text: impl Into<String>) -> Self {
        Self::Texts(vec![text.into()], false)
    }
}

impl Shell<'_> {
    /// Adds the value of a variable.
    pub fn variable(&mut self, name: &str, index: Option<&str>, is_quoted: bool, out: &mut Fields, state: &mut State) {
        let held = self.held(name, index, state);
        self.add(held, name, is_quoted, out);
    }

    fn add(&mut self, held: Held, name: &str, is_quoted: bool, out: &mut Fields) {
        match held {
            Held::Texts(texts, true) if is_quoted && out.splits() => out.items(&texts),
            Held::Texts(texts, _) => {
                let joined = texts.join(" ");
                self.spend(joined.len() / 64);
                out.substituted(&joined, is_quoted);
            }
            Held::Open(text) => out.literal(&text),
            Held::Unset => {
                let is_argument = name.starts_with(|c: char| c.is_ascii_digit());
                if self.is_test {
                    self.asked_unset |= !is_argument;
                } else if !is_argument {
                    out.literal(&marked(UNSET, &format!("${name}")));
                }
            }
        }
    }

    fn held(&mut self, name: &str, index: Option<&str>, state: &mut State) -> Held {
        if let "@" | "*" = name {
            self.asked_arguments |= state.arguments.is_none();
            // Nobody says that the script that is given is started with arguments.
            let given = state.arguments.as_ref().map(|all| all.to_vec()).unwrap_or_default();
            return Held::Texts(given, name == "@");
        }
        if name == "#" || name.starts_with(|c: char| c.is_ascii_digit()) {
            return self.argument(name, state);
        }
        match name {
            "?" => return Held::one("0"),
            "-" => return Held::one(""),
            "$" | "!" => return Held::Open(open(&format!("${name}"))),
            _ => {}
        }
        self.read.insert(name.to_owned());
        let Some(value) = state.get(name).cloned() else {
            return match name {
                "PWD" => Held::one(state.place()),
                "BASH_SOURCE" => Held::one(&*state.script),
                "HOME" | "USER" | "HOSTNAME" | "RANDOM" | "SECONDS" | "UID" | "LINENO" => {
                    Held::Open(open(&format!("${name}")))
                }
                _ => Held::Unset,
            };
        };
        match (value, index) {
            (Value::Text(text), None | Some("0")) => Held::one(&*text),
            (Value::Text(text), Some("@" | "*")) => Held::one(&*text),
            (Value::Text(text), Some(_)) if is_open(&text) => Held::one(&*text),
            (Value::Text(_), Some(_)) => Held::one(""),
            (Value::List(items), None) => items.first().map_or(Held::Unset, |item| Held::one(item.as_str())),
            (Value::List(items), Some(all @ ("@" | "*"))) => Held::Texts(items.to_vec(), all == "@"),
            (Value::List(items), Some(index)) => match self.number(index, state) {
                Some(at) => {
                    let length = items.len() as i64;
                    let at = if at < 0 { at.saturating_add(length) } else { at };
                    let found = usize::try_from(at).ok().and_then(|at| items.get(at));
                    Held::one(found.map_or("", String::as_str))
                }
                None => Held::Open(open(&format!("${{{name}[{index}]}}"))),
            },
            (Value::Map(items), Some(all @ ("@" | "*"))) => Held::Texts(items.values().cloned().collect(), all == "@"),
            (Value::Map(items), index) => {
                let key = self.text(index.unwrap_or("0"), state);
                match items.get(&key) {
                    Some(item) => Held::one(item.as_str()),
                    None if is_open(&key) => Held::Open(open(&format!("${{{name}[{key}]}}"))),
                    None => Held::one(""),
                }
            }
        }
    }

    /// `$0`, `$1`, `$#` and so on.
    fn argument(&mut self, name: &str, state: &State) -> Held {
        if name == "0" {
            return Held::one(&*state.script);
        }
        let Some(arguments) = &state.arguments else {
            self.asked_arguments = true;
            return Held::Open(open(&format!("${name}")));
        };
        match name.parse::<usize>() {
            Ok(at) => arguments
                .get(at.wrapping_sub(1))
                .map_or(Held::Unset, |text| Held::one(text.as_str())),
            Err(_) => Held::one(arguments.len().to_string()),
        }
    }

    /// Adds what `${…}` gives.
    pub fn parameter(&mut self, inner: &str, is_quoted: bool, out: &mut Fields, state: &mut State) {
        if let Some(named) = inner.strip_prefix('#').filter(|named| !named.is_empty()) {
            let (name, index, _) = taken_apart(named);
            let length = match self.held(name, index, state) {
                Held::Texts(texts, _) if texts.iter().any(|text| is_open(text)) => None,
                Held::Texts(texts, _) if matches!(index, Some("@" | "*")) || matches!(name, "@" | "*") => {
                    Some(texts.len())
                }
                Held::Texts(texts, _) => Some(texts[0].chars().count()),
                Held::Unset => Some(0),
                Held::Open(_) => None,
            };
            let text = length.map_or_else(|| open(&format!("${{{inner}}}")), |length| length.to_string());
            return out.substituted(&text, is_quoted);
        }
        if let Some(named) = inner.strip_prefix('!').filter(|named| !named.is_empty()) {
            return self.indirect(named, is_quoted, out, state);
        }
        let (name, index, operation) = taken_apart(inner);
        if name.is_empty() {
            return out.literal(&open(&format!("${{{inner}}}")));
        }
        let held = self.held(name, index, state);
        if operation.is_empty() {
            return self.add(held, name, is_quoted, out);
        }
        match default_of(operation) {
            Some((sign, counts_empty, word)) => {
                let is_there = match &held {
                    Held::Texts(texts, _) => !counts_empty || texts.iter().any(|text| !text.is_empty()),
                    Held::Unset => false,
                    Held::Open(_) => return self.default_of_open(held, sign, word, (name, is_quoted), out, state),
                };
                match (sign, is_there) {
                    ('+', true) | ('-', false) => self.expand(word, is_quoted, out, state),
                    ('+', false) => {}
                    ('=', false) => {
                        let value = self.text(word, state);
                        state.set_text(name, &value);
                        out.substituted(&value, is_quoted);
                    }
                    ('?', false) => out.literal(&marked(UNSET, &format!("${name}"))),
                    _ => self.add(held, name, is_quoted, out),
                }
            }
            None => {
                let changed = self.changed(held, inner, operation, state);
                self.add(changed, name, is_quoted, out);
            }
        }
    }

    /// A default of an argument that nobody knows is what it is without arguments.
    fn default_of_open(
        &mut self,
        held: Held,
        sign: char,
        word: &str,
        (name, is_quoted): (&str, bool),
        out: &mut Fields,
        state: &mut State,
    ) {
        let is_argument = name.starts_with(|c: char| c.is_ascii_digit());
        match sign {
            '-' | '=' if is_argument => self.expand(word, is_quoted, out, state),
            '+' if is_argument => {}
            _ => self.add(held, name, is_quoted, out),
        }
    }

    fn indirect(&mut self, named: &str, is_quoted: bool, out: &mut Fields, state: &mut State) {
        let (name, index, _) = taken_apart(named);
        if let Some("@" | "*") = index {
            let keys: Vec<String> = match state.get(name) {
                Some(Value::Map(items)) => items.keys().cloned().collect(),
                Some(Value::List(items)) => (0..items.len()).map(|at| at.to_string()).collect(),
                _ => Vec::new(),
            };
            return self.add(Held::Texts(keys, true), name, is_quoted, out);
        }
        match self.held(name, index, state) {
            Held::Texts(texts, _) if texts.len() == 1 && is_name(&texts[0]) => {
                let target = texts[0].clone();
                self.variable(&target, None, is_quoted, out, state);
            }
            _ => out.literal(&open(&format!("${{!{named}}}"))),
        }
    }

    /// What a part of `${…}` behind the name makes of a text: a part of it, or another one.
    fn changed(&mut self, held: Held, inner: &str, operation: &str, state: &mut State) -> Held {
        let (texts, is_several) = match held {
            Held::Texts(texts, is_several) => (texts, is_several),
            Held::Unset => return Held::Unset,
            Held::Open(_) => return Held::Open(open(&format!("${{{inner}}}"))),
        };
        if let Some(range) = operation.strip_prefix(':') {
            return self.part(texts, is_several, inner, range, state);
        }
        let sign = operation.chars().next().unwrap_or_default();
        let behind = operation.strip_prefix(sign).unwrap_or_default();
        let twice = behind.strip_prefix(sign);
        let (doubled, word) = (twice.is_some(), twice.unwrap_or(behind));
        let (pattern, with) = match sign {
            '/' => {
                let at = unquoted_slash(word);
                (&word[..at], word.get(at + 1..).unwrap_or_default())
            }
            _ => (word, ""),
        };
        let pattern = self.text(pattern, state);
        let with = self.text(with, state);
        if is_open(&pattern) || texts.iter().any(|text| is_open(text)) && !matches!(sign, '#' | '%') {
            return Held::Open(open(&format!("${{{inner}}}")));
        }
        let change = |text: &String| -> String {
            match sign {
                '#' => without_beginning(text, &pattern, doubled).to_owned(),
                '%' => without_end(text, &pattern, doubled).to_owned(),
                '/' => replaced(text, &pattern, &with, doubled),
                '^' if doubled => text.to_uppercase(),
                ',' if doubled => text.to_lowercase(),
                '^' | ',' => {
                    let mut chars = text.chars();
                    let first = chars.next().map(|c| {
                        if sign == '^' {
                            c.to_ascii_uppercase()
                        } else {
                            c.to_ascii_lowercase()
                        }
                    });
                    first.into_iter().chain(chars).collect()
                }
                _ => text.clone(),
            }
        };
        Held::Texts(texts.iter().map(change).collect(), is_several)
    }

    fn part(&mut self, texts: Vec<String>, is_several: bool, inner: &str, range: &str, state: &mut State) -> Held {
        let (from, length) = match range.split_once(':') {
            Some((from, length)) => (from, Some(length)),
            None => (range, None),
        };
        let is_of_arguments = inner.starts_with(['@', '*']);
        let count = if is_several || is_of_arguments {
            texts.len()
        } else {
            texts[0].chars().count()
        };
        let place = |number: Option<i64>| {
            let number = number?;
            let number = if number < 0 {
                number.saturating_add(count as i64)
            } else {
                number
            };
            usize::try_from(number).ok()
        };
        let Some(from) = place(self.number(from, state)) else {
            return Held::Open(open(&format!("${{{inner}}}")));
        };
        let length = match length {
            None => usize::MAX,
            Some(length) => match self.number(length, state) {
                Some(length) if length < 0 => {
                    (count as i64).saturating_add(length).saturating_sub(from as i64).max(0) as usize
                }
                Some(length) => length as usize,
                None => return Held::Open(open(&format!("${{{inner}}}"))),
            },
        };
        if is_several || is_of_arguments {
            // Arguments are counted from 1.
            let from = from.saturating_sub(usize::from(is_of_arguments));
            return Held::Texts(texts.into_iter().skip(from).take(length).collect(), is_several);
        }
        if is_open(&texts[0]) {
            return Held::Open(open(&format!("${{{inner}}}")));
        }
        Held::one(texts[0].chars().skip(from).take(length).collect::<String>())
    }
}

/// Sign of a default (`-`, `=`, `?`, `+`), whether an empty text counts as none, and the word behind it.
fn default_of(operation: &str) -> Option<(char, bool, &str)> {
    let (counts_empty, rest) = match operation.strip_prefix(':') {
        Some(rest) => (true, rest),
        None => (false, operation),
    };
    let sign = rest.chars().next().filter(|sign| "-=?+".contains(*sign))?;
    Some((sign, counts_empty, &rest[1..]))
}

/// Name, index and the rest of what stands in `${…}`.
fn taken_apart(inner: &str) -> (&str, Option<&str>, &str) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = match inner.chars().next() {
        Some(c) if is_part(c) => inner.find(|c| !is_part(c)).unwrap_or(inner.len()),
        Some(c) if "@*#?$!-".contains(c) => 1,
        _ => 0,
    };
    let (name, rest) = inner.split_at(end);
    match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((index, rest)) => (name, Some(index), rest),
        None => (name, None, rest),
    }
}

/// Place of the slash that ends a pattern.
fn unquoted_slash(word: &str) -> usize {
    let mut at = 0;
    while at < word.len() {
        if word[at..].starts_with('/') {
            return at;
        }
        at += span(&word[at..], 0).unwrap_or(word.len() - at);
    }
    word.len()
}
