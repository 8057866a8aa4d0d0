//! Words and operators of a shell script. Quotes stay as they are written: a word is expanded when it is evaluated.

use super::EarlyEnd;

/// Substitutions within each other that are followed. No script has as many, and each costs a frame of the stack.
const MOST_NESTED: usize = 60;

/// A token of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A word, as it is written.
    Word(Word),
    /// `;`, `&&`, `(` and so on.
    Operator(&'static str),
    /// The end of a line, and what ended it before its author meant it to end.
    End(Option<EarlyEnd>),
    Redirection(Redirection),
}

/// A word as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub raw: String,
    /// Number of its line, from 1.
    pub line: usize,
    /// False if its quotes do not end.
    pub is_closed: bool,
}

/// A redirection to or from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirection {
    pub kind: RedirectionKind,
    /// The word behind it, as it is written; of a here-document its text.
    pub target: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RedirectionKind {
    /// `<`
    In,
    /// `>`, `>|`, `&>`
    Out,
    /// `>>`
    Append,
    /// `>&`, `<&`, of a descriptor, or of standard error.
    Other,
    /// `<<`; true if nothing in it is expanded.
    Document(bool),
    /// `<<<`
    Text,
}

const OPERATORS: [&str; 12] = [";;&", ";;", ";&", ";", "&&", "&", "||", "|&", "|", "((", "(", ")"];

/// Reads the tokens of a script.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
        out: Vec::new(),
        documents: Vec::new(),
        is_continued: false,
        has_tokens: false,
    };
    while lexer.at < text.len() {
        lexer.step();
    }
    lexer.out
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    out: Vec<Token>,
    /// Here-documents whose text begins behind this line: the place of the token, the word that ends it, and true if tabs
    /// at the beginning of lines count not.
    documents: Vec<(usize, String, bool)>,
    /// A backslash has joined this line to the one before.
    is_continued: bool,
    has_tokens: bool,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn step(&mut self) {
        let rest = self.rest();
        let first = rest.as_bytes()[0];
        if rest.starts_with("\\\n") {
            self.at += 2;
            self.line += 1;
            self.is_continued = true;
        } else if first == b'\n' {
            self.at += 1;
            let before = self.text[..self.at - 1].rsplit('\n').next().unwrap_or_default();
            let is_blank = before.ends_with([' ', '\t']) && ends_in_backslash(before.trim_end());
            self.end(is_blank.then_some(EarlyEnd::Blank));
        } else if matches!(first, b' ' | b'\t' | b'\r') {
            self.at += 1;
        } else if first == b'#' {
            let comment = rest.lines().next().unwrap_or_default();
            self.at += comment.len();
            let is_early = self.is_continued || self.has_tokens && comment.trim_end().ends_with('\\');
            if self.rest().starts_with('\n') {
                self.at += 1;
                self.end(is_early.then_some(EarlyEnd::Comment));
            }
        } else if !self.redirection() {
            self.operator_or_word();
        }
    }

    /// Ends a line, and reads the here-documents that it begins.
    fn end(&mut self, early: Option<EarlyEnd>) {
        self.out.push(Token::End(early));
        self.line += 1;
        (self.is_continued, self.has_tokens) = (false, false);
        for (place, end, strips_tabs) in std::mem::take(&mut self.documents) {
            let mut document = String::new();
            while self.at < self.text.len() {
                let line = self.rest().split_inclusive('\n').next().unwrap_or_default();
                self.at += line.len();
                self.line += 1;
                let plain = if strips_tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
                };
                if plain.trim() == end {
                    break;
                }
                document.push_str(plain);
            }
            if let Token::Redirection(redirection) = &mut self.out[place] {
                redirection.target = document;
            }
        }
    }

    /// Reads a redirection, with the digits that name a descriptor before it.
    fn redirection(&mut self) -> bool {
        use RedirectionKind::{Append, Document, In, Other, Out, Text};
        let rest = self.rest();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let operator = &rest[digits..];
        let both = digits == 0 && operator.starts_with("&>");
        if !both && !operator.starts_with(['<', '>']) || operator.starts_with("<(") || operator.starts_with(">(") {
            return false;
        }
        let kinds = [
            ("&>>", Append),
            ("&>", Out),
            ("<<<", Text),
            ("<<", Document(false)),
            ("<&", Other),
            ("<>", In),
            ("<", In),
            (">>", Append),
            (">&", Other),
            (">|", Out),
            (">", Out),
        ];
        let Some((sign, mut kind)) = kinds.into_iter().find(|(sign, _)| operator.starts_with(sign)) else {
            return false;
        };
        if digits > 0 && !matches!(&rest[..digits], "0" | "1") {
            kind = Other;
        }
        self.at += digits + sign.len();
        let strips_tabs = matches!(kind, Document(_)) && self.rest().starts_with('-');
        self.at += usize::from(strips_tabs);
        let blanks = self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
        self.at += blanks;
        let length = word_end(self.rest(), 0).0;
        let mut target = self.rest()[..length].to_owned();
        self.take(length);
        if let Document(is_literal) = &mut kind {
            *is_literal = target.contains(['\'', '"', '\\']);
            let end: String = target.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
            self.documents.push((self.out.len(), end, strips_tabs));
            target = String::new();
        }
        self.out.push(Token::Redirection(Redirection { kind, target }));
        self.has_tokens = true;
        true
    }

    fn operator_or_word(&mut self) {
        self.has_tokens = true;
        let rest = self.rest();
        if let Some(operator) = OPERATORS.into_iter().find(|operator| rest.starts_with(operator)) {
            self.at += operator.len();
            self.out.push(Token::Operator(operator));
            return;
        }
        let (length, is_closed) = word_end(rest, 0);
        // A lone `<` or `>` of a process substitution, and whatever else is no word.
        let length = length.max(rest.chars().next().map_or(1, char::len_utf8));
        let line = self.line;
        let raw = rest[..length].to_owned();
        self.take(length);
        self.out.push(Token::Word(Word { raw, line, is_closed }));
    }

    fn take(&mut self, length: usize) {
        let taken = &self.rest()[..length];
        self.line += taken.matches('\n').count();
        self.is_continued |= taken.contains("\\\n");
        self.at += length;
    }
}

/// Returns true if the last character is a backslash that no other one escapes.
fn ends_in_backslash(text: &str) -> bool {
    text.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

/// Length of the word at the beginning of a text, and true if all its quotes end.
pub(super) fn word_end(text: &str, depth: usize) -> (usize, bool) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let is_list = byte == b'(' && is_assignment_head(&text[..at]);
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b')' => break,
            b'<' | b'>' if bytes.get(at + 1) != Some(&b'(') => break,
            b'<' | b'>' => at += 1,
            b'(' if is_list || matches!(text[..at].chars().last(), Some('<' | '>' | '@' | '?' | '*' | '+' | '!')) => {
                match span(&text[at..], depth) {
                    Some(length) => at += length,
                    None => return (text.len(), false),
                }
            }
            b'(' => break,
            _ => match span(&text[at..], depth) {
                Some(length) => at += length,
                None => return (text.len(), false),
            },
        }
    }
    (at, true)
}

/// True for `NAME=` or `NAME+=`, behind which a list may stand.
fn is_assignment_head(text: &str) -> bool {
    let name = text
        .strip_suffix('=')
        .map(|name| name.strip_suffix('+').unwrap_or(name));
    name.is_some_and(super::is_name)
}

/// Length of what begins a text: a quoted part, a substitution, a list in brackets, an escaped character or one character;
/// `None` if it does not end.
pub(super) fn span(text: &str, depth: usize) -> Option<usize> {
    if depth > MOST_NESTED {
        return None;
    }
    let first = text.chars().next()?;
    match first {
        '\\' => Some(1 + text[1..].chars().next().map_or(0, char::len_utf8)),
        '\'' => text[1..].find('\'').map(|end| end + 2),
        '"' => inside(text, 1, '"', depth),
        '`' => inside(text, 1, '`', depth),
        '(' => inside(text, 1, ')', depth),
        '$' if text[1..].starts_with('\'') => inside(text, 2, '\'', depth),
        '$' if text[1..].starts_with('{') => inside(text, 2, '}', depth),
        '$' if text[1..].starts_with('(') => inside(text, 2, ')', depth),
        _ => Some(first.len_utf8()),
    }
}

/// Length of a text up to the sign that ends what begins it, from a place within.
fn inside(text: &str, from: usize, end: char, depth: usize) -> Option<usize> {
    let mut at = from;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        at += match next {
            _ if next == end => return Some(at + next.len_utf8()),
            '\\' => span(rest, depth + 1)?,
            '$' if matches!(end, '"' | ')' | '}') => span(rest, depth + 1)?,
            '`' if matches!(end, '"' | ')') => span(rest, depth + 1)?,
            '\'' | '"' | '(' if end == ')' => span(rest, depth + 1)?,
            '"' if end == '}' => span(rest, depth + 1)?,
            // A comment may hold a lone quote.
            '#' if end == ')' && text[..at].ends_with(['\n', ' ', '\t']) => rest.find('\n')?,
            _ => next.len_utf8(),
        };
    }
    None
}
