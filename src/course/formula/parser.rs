//! Parses a formula's text by operator precedence.

use super::{Formula, FormulaError, OPERATORS, Operator};
use crate::number;

/// Parses a formula.
pub fn parse(text: &str) -> Result<Formula, FormulaError> {
    let mut parser = Parser { rest: text.trim() };
    let formula = parser.operation(0)?;
    match parser.rest {
        "" => Ok(formula),
        rest => Err(FormulaError(format!("`{text}`: `{rest}` was not expected"))),
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest.trim_start();
        taken
    }

    fn accept(&mut self, text: &str) -> bool {
        let found = self.rest.starts_with(text);
        if found {
            self.take(text.len());
        }
        found
    }

    fn expect(&mut self, text: &str) -> Result<(), FormulaError> {
        match self.accept(text) {
            true => Ok(()),
            false => Err(FormulaError(format!("`{text}` was expected before `{}`", self.rest))),
        }
    }

    /// Parses operators of at least this precedence, left to right.
    fn operation(&mut self, strength: u8) -> Result<Formula, FormulaError> {
        let mut left = self.operand()?;
        loop {
            let next = OPERATORS.iter().find(|o| self.rest.starts_with(o.0));
            let Some(&(name, of, _)) = next.filter(|o| o.1 > strength) else {
                return Ok(left);
            };
            self.take(name.len());
            let right = self.operation(of)?;
            left = Formula::Binary(Operator(name), Box::new((left, right)));
        }
    }

    fn operand(&mut self) -> Result<Formula, FormulaError> {
        if self.accept("(") {
            let inner = self.operation(0)?;
            return self.expect(")").map(|()| inner);
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
        let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let word = self.take(length).to_owned();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let value = number::read(&word).ok_or_else(|| FormulaError(format!("`{word}` is no number")))?;
            return Ok(Formula::Number(value, word));
        }
        if word.is_empty() {
            return Err(FormulaError(format!("a value was expected before `{}`", self.rest)));
        }
        if !self.accept("(") {
            return Ok(Formula::Name(word));
        }
        let mut arguments = vec![self.operation(0)?];
        while self.accept(",") {
            arguments.push(self.operation(0)?);
        }
        self.expect(")").map(|()| Formula::Call(word, arguments))
    }
}
