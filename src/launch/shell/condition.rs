//! Conditions: `[ … ]`, `test` and `[[ … ]]`.

use super::interpret::Shell;
use super::pattern::fits;
use super::state::State;
use super::{is_open, open_word};

/// Brackets within each other that are followed.
const MOST_NESTED: usize = 30;

/// A condition's words, as they are read.
struct Reader<'a> {
    words: &'a [String],
    at: usize,
    depth: usize,
    /// `[[`, whose `=` compares with a pattern.
    is_extended: bool,
    state: &'a State,
    shell: &'a Shell<'a>,
}

impl Shell<'_> {
    /// True or false where a condition of these words is known.
    pub fn holds(&self, words: &[String], is_extended: bool, state: &State) -> Option<bool> {
        let mut reader = Reader {
            words,
            at: 0,
            depth: 0,
            is_extended,
            state,
            shell: self,
        };
        let value = reader.either();
        (reader.at == words.len()).then_some(value).flatten()
    }
}

impl Reader<'_> {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(String::as_str)
    }

    fn take(&mut self, signs: &[&str]) -> bool {
        let is_there = self.peek().is_some_and(|word| signs.contains(&word));
        self.at += usize::from(is_there);
        is_there
    }

    fn either(&mut self) -> Option<bool> {
        let mut value = self.both();
        while self.take(&["||", "-o"]) {
            let right = self.both();
            value = match (value, right) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
        }
        value
    }

    fn both(&mut self) -> Option<bool> {
        let mut value = self.negated();
        while self.take(&["&&", "-a"]) {
            let right = self.negated();
            value = match (value, right) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
        }
        value
    }

    fn negated(&mut self) -> Option<bool> {
        self.depth += 1;
        if self.depth > MOST_NESTED {
            self.at = self.words.len();
            return None;
        }
        let is_negation = self.peek() == Some("!") && self.at + 1 < self.words.len();
        let value = if is_negation {
            self.at += 1;
            self.negated().map(|value| !value)
        } else if self.take(&["("]) {
            let value = self.either();
            self.take(&[")"]);
            value
        } else {
            self.single()
        };
        self.depth -= 1;
        value
    }

    fn single(&mut self) -> Option<bool> {
        let left = self.peek()?.to_owned();
        let sign = self.words.get(self.at + 1).map(String::as_str);
        if let Some(sign) = sign
            && is_comparison(sign)
        {
            self.at += 2;
            let right = self.peek().unwrap_or_default().to_owned();
            self.at += usize::from(self.at < self.words.len());
            if sign == "=~" {
                // Brackets of the expression are words of their own.
                while self.peek().is_some_and(|word| !matches!(word, "&&" | "||")) {
                    self.at += 1;
                }
                return None;
            }
            return self.compared(&left, sign, &right);
        }
        let is_unary = left.len() == 2 && left.starts_with('-') && self.at + 1 < self.words.len();
        self.at += 1;
        if is_unary {
            let operand = self.peek().unwrap_or_default().to_owned();
            self.at += 1;
            return self.unary(&left[1..], &operand);
        }
        is_long(&left)
    }

    fn compared(&self, left: &str, sign: &str, right: &str) -> Option<bool> {
        if matches!(sign, "=" | "==" | "!=") {
            if is_open(left) || is_open(right) {
                return None;
            }
            let is_same = if self.is_extended {
                fits(right, left)
            } else {
                left == right
            };
            return Some(is_same != (sign == "!="));
        }
        let number = |text: &str| text.trim().parse::<i64>().ok();
        let (left, right) = (number(left)?, number(right)?);
        Some(match sign {
            "-eq" => left == right,
            "-ne" => left != right,
            "-lt" => left < right,
            "-le" => left <= right,
            "-gt" => left > right,
            "-ge" => left >= right,
            _ => return None,
        })
    }

    fn unary(&self, sign: &str, operand: &str) -> Option<bool> {
        match sign {
            "z" => is_long(operand).map(|value| !value),
            "n" => is_long(operand),
            "v" => self.state.get(operand).is_some().then_some(true),
            "e" | "f" | "r" | "s" => self.shell.has_file(operand, self.state).then_some(true),
            _ => None,
        }
    }
}

fn is_comparison(sign: &str) -> bool {
    [
        "=", "==", "!=", "=~", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef",
    ]
    .contains(&sign)
}

/// Whether a text has characters, if that is known.
fn is_long(text: &str) -> Option<bool> {
    match open_word(text) {
        Some(_) => None,
        None => Some(!text.is_empty()),
    }
}
