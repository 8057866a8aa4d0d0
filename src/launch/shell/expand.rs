//! Expands words: quotes, variables, substitutions, and the fields into which the shell splits what they give.

use super::arithmetic;
use super::interpret::Shell;
use super::lexer::span;
use super::state::{State, Value};
use super::{OPEN, UNSET, open, plain};

/// Substitutions within each other that are followed.
const MOST_NESTED: usize = 40;

/// Fields of words, as they grow.
pub(super) struct Fields {
    pub done: Vec<String>,
    current: Option<String>,
    /// Characters at which what was substituted is split; `None` if it is not.
    separators: Option<Vec<char>>,
}

impl Fields {
    fn new(separators: Option<Vec<char>>) -> Self {
        Self {
            done: Vec::new(),
            current: None,
            separators,
        }
    }

    /// Adds a text as it is.
    pub fn literal(&mut self, text: &str) {
        self.current.get_or_insert_default().push_str(text);
    }

    /// Adds what was substituted.
    pub fn substituted(&mut self, text: &str, is_quoted: bool) {
        let Some(separators) = self.separators.clone().filter(|_| !is_quoted) else {
            return self.literal(text);
        };
        let mut depth = 0_usize;
        for c in text.chars() {
            // What stands for something that is not known is never split.
            match c {
                OPEN | UNSET => depth += 1,
                super::CLOSE => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && separators.contains(&c) {
                self.end();
            } else {
                self.current.get_or_insert_default().push(c);
            }
        }
    }

    /// Adds items, each a field of its own.
    pub fn items(&mut self, items: &[String]) {
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.end();
            }
            self.literal(item);
        }
    }

    /// True if what is substituted is split.
    pub fn splits(&self) -> bool {
        self.separators.is_some()
    }

    fn end(&mut self) {
        self.done.extend(self.current.take());
    }

    fn finish(mut self) -> Vec<String> {
        self.end();
        self.done
    }
}

impl Shell<'_> {
    /// Fields of a word.
    pub fn fields(&mut self, raw: &str, state: &mut State) -> Vec<String> {
        let separators: Vec<char> = match state.get("IFS") {
            Some(Value::Text(text)) => text.chars().collect(),
            _ => vec![' ', '\t', '\n'],
        };
        let mut out = Vec::new();
        for raw in braces(raw) {
            let mut fields = Fields::new(Some(separators.clone()));
            self.expand(&raw, false, &mut fields, state);
            out.extend(fields.finish());
        }
        out
    }

    /// Text of a word that is not split.
    pub fn text(&mut self, raw: &str, state: &mut State) -> String {
        let mut fields = Fields::new(None);
        self.expand(raw, false, &mut fields, state);
        fields.finish().join(" ")
    }

    /// Text of a here-document, in which quotes mean nothing.
    pub fn document(&mut self, raw: &str, state: &mut State) -> String {
        let mut fields = Fields::new(None);
        self.expand(raw, true, &mut fields, state);
        fields.finish().join(" ")
    }

    pub fn expand(&mut self, raw: &str, is_quoted: bool, out: &mut Fields, state: &mut State) {
        self.nested += 1;
        if self.nested > MOST_NESTED || !self.spend(1 + raw.len() / 64) {
            out.literal(&open(raw));
        } else {
            self.expand_within(raw, is_quoted, out, state);
        }
        self.nested -= 1;
    }

    fn expand_within(&mut self, raw: &str, is_quoted: bool, out: &mut Fields, state: &mut State) {
        let mut rest = raw;
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '\\' => {
                    let next = rest[1..].chars().next();
                    match next {
                        Some('\n') => {}
                        Some(next) if !is_quoted || matches!(next, '$' | '`' | '"' | '\\') => {
                            out.literal(next.encode_utf8(&mut [0; 4]));
                        }
                        Some(next) => {
                            out.literal("\\");
                            out.literal(next.encode_utf8(&mut [0; 4]));
                        }
                        None => out.literal("\\"),
                    }
                    1 + next.map_or(0, char::len_utf8)
                }
                '\'' if !is_quoted => {
                    let end = rest[1..].find('\'').map_or(rest.len(), |end| end + 1);
                    out.literal(&rest[1..end]);
                    (end + 1).min(rest.len())
                }
                '"' if !is_quoted => {
                    let length = span(rest, 0).unwrap_or(rest.len());
                    let inner = rest[1..length].strip_suffix('"').unwrap_or(&rest[1..length]);
                    // An empty text in quotes is a field, but for `"$@"` of no arguments.
                    if !matches!(inner, "$@" | "${@}") && !inner.ends_with("[@]}") {
                        out.literal("");
                    }
                    self.expand(inner, true, out, state);
                    length
                }
                '`' => {
                    let length = span(rest, 0).unwrap_or(rest.len());
                    let inner = rest[1..length].strip_suffix('`').unwrap_or(&rest[1..length]);
                    self.substitution(&inner.replace("\\`", "`"), is_quoted, out, state);
                    length
                }
                '$' => self.dollar(rest, is_quoted, out, state),
                _ => {
                    let end = rest[first.len_utf8()..].find(['\\', '\'', '"', '`', '$']);
                    let end = end.map_or(rest.len(), |end| end + first.len_utf8());
                    out.literal(&rest[..end]);
                    end
                }
            };
            rest = &rest[length..];
        }
    }

    /// Expands what a `$` begins, and returns its length.
    fn dollar(&mut self, rest: &str, is_quoted: bool, out: &mut Fields, state: &mut State) -> usize {
        let behind = &rest[1..];
        if behind.starts_with('\'') && !is_quoted {
            let length = span(rest, 0).unwrap_or(rest.len());
            out.literal(&unescaped(rest[2..length].trim_end_matches('\'')));
            return length;
        }
        if behind.starts_with('"') {
            return 1;
        }
        if behind.starts_with(['(', '{']) {
            let Some(length) = span(rest, 0) else {
                out.literal(rest);
                return rest.len();
            };
            let inner = &rest[2..length - 1];
            if behind.starts_with('{') {
                self.parameter(inner, is_quoted, out, state);
            } else if let Some(sum) = inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
                let value = self.sum(sum, state);
                out.substituted(&value, is_quoted);
            } else {
                self.substitution(inner, is_quoted, out, state);
            }
            return length;
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = match behind.chars().next() {
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                &behind[..behind.find(|c| !is_part(c)).unwrap_or(behind.len())]
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => &behind[..1],
            _ => {
                out.literal("$");
                return 1;
            }
        };
        self.variable(name, None, is_quoted, out, state);
        1 + name.len()
    }

    /// Value of a sum, or what stands for it.
    pub fn sum(&mut self, text: &str, state: &mut State) -> String {
        match self.number(text, state) {
            Some(value) => value.to_string(),
            None => open(&format!("$(({text}))")),
        }
    }

    pub fn number(&mut self, text: &str, state: &mut State) -> Option<i64> {
        let expanded = self.document(text, state);
        self.note_read(&expanded);
        // What stands for something that is not known is no number.
        arithmetic::value(&expanded, state)
    }

    fn substitution(&mut self, script: &str, is_quoted: bool, out: &mut Fields, state: &mut State) {
        match self.printed(script, state) {
            Some(text) => out.substituted(text.trim_end_matches('\n'), is_quoted),
            None => out.literal(&open(&format!("$({})", plain(script).trim()))),
        }
    }
}

/// Characters that a backslash stands for in `$'…'`.
pub(super) fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            (c, _) => out.push(c),
        }
    }
    out
}

/// Most words of a range in braces.
const MOST_OF_BRACES: i64 = 1000;

/// Words for which `{a,b}` and `{1..4}` in a word without quotes stand.
fn braces(raw: &str) -> Vec<String> {
    let whole = || vec![raw.to_owned()];
    if raw.contains(['\'', '"', '\\', '$', '`']) {
        return whole();
    }
    let Some((before, rest)) = raw.split_once('{') else {
        return whole();
    };
    let Some((inner, after)) = rest.split_once('}') else {
        return whole();
    };
    if inner.contains('{') || after.contains('{') {
        return whole();
    }
    let items: Vec<String> = match inner.split_once("..") {
        Some((from, to)) => match (from.parse::<i64>(), to.parse::<i64>()) {
            (Ok(from), Ok(to)) if from <= to && to.saturating_sub(from) < MOST_OF_BRACES => {
                (from..=to).map(|number| number.to_string()).collect()
            }
            _ => return whole(),
        },
        None if inner.contains(',') => inner.split(',').map(str::to_owned).collect(),
        None => return whole(),
    };
    items.iter().map(|item| format!("{before}{item}{after}")).collect()
}
