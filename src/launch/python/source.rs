//! Text of a script or a notebook, parsed.

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{Mod, Stmt};
use ruff_python_parser::lexer::lex;
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::TextSize;

/// Line and cell of a statement or an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Place {
    /// Line of the file or of the cell, from 1.
    pub line: usize,
    /// Cell of a notebook, from 1; `None` in a script.
    pub cell: Option<usize>,
}

/// Limit on how deep expressions and blocks may nest. The parser recurses, and so does the drop of its tree: deeper nesting would
/// overflow the stack, of which a worker of a browser has 1 MiB.
const MOST_DEPTH: usize = 96;

/// A script, or the cell of a notebook, parsed.
pub(super) struct Unit {
    pub body: Vec<Stmt>,
    /// Offsets at which lines begin.
    starts: Vec<usize>,
    cell: Option<usize>,
}

impl Unit {
    /// Parses a text.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub fn parse(text: &str, cell: Option<usize>) -> Result<Self, String> {
        let starts: Vec<usize> = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        let unit = Self {
            body: Vec::new(),
            starts,
            cell,
        };
        if is_too_deep(text) {
            return Err(format!(
                "more than {MOST_DEPTH} expressions or blocks within one another"
            ));
        }
        let parsed = parse_unchecked(text, ParseOptions::from(Mode::Module));
        if let Some(error) = parsed.errors().first() {
            let line = unit.place(error.location.start()).line;
            return Err(format!("line {line}: {}", error.error));
        }
        let Mod::Module(module) = parsed.into_syntax() else {
            return Err("it is no module".to_owned());
        };
        Ok(Self {
            body: module.body.into_iter().collect(),
            ..unit
        })
    }

    /// Place of an offset.
    pub fn place(&self, at: TextSize) -> Place {
        Place {
            line: self.starts.partition_point(|start| *start <= at.to_usize()),
            cell: self.cell,
        }
    }
}

/// Returns true if expressions or blocks may nest deeper than [`MOST_DEPTH`], by an upper bound that needs the tokens alone: the
/// blocks around a token, and in each open bracket the operators and brackets since its last comma. Operators that follow one
/// another count too, since in `a + b + c` or `f()()` each holds the one before.
fn is_too_deep(text: &str) -> bool {
    let mut lexer = lex(text, Mode::Module);
    // The counts of the statement and of each open bracket, of which `total` is the sum.
    let mut open: Vec<usize> = vec![0];
    let (mut total, mut indents) = (0_usize, 0_usize);
    loop {
        let kind = lexer.next_token();
        match kind {
            TokenKind::EndOfFile => return false,
            TokenKind::Indent => indents += 1,
            TokenKind::Dedent => indents = indents.saturating_sub(1),
            TokenKind::Newline => (open, total) = (vec![0], 0),
            TokenKind::Lpar
            | TokenKind::Lsqb
            | TokenKind::Lbrace
            | TokenKind::FStringStart
            | TokenKind::TStringStart => {
                if let Some(last) = open.last_mut() {
                    *last += 1;
                }
                open.push(0);
                total += 1;
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace | TokenKind::FStringEnd | TokenKind::TStringEnd
                if open.len() > 1 =>
            {
                total -= open.pop().unwrap_or_default();
            }
            // Elements of a list are side by side in the tree: the next one begins anew.
            TokenKind::Comma => total -= open.last_mut().map_or(0, std::mem::take),
            TokenKind::Name
            | TokenKind::String
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Comment
            | TokenKind::NonLogicalNewline
            | TokenKind::FStringMiddle
            | TokenKind::TStringMiddle => {}
            _ => {
                if let Some(last) = open.last_mut() {
                    *last += 1;
                }
                total += 1;
            }
        }
        if total + indents > MOST_DEPTH {
            return true;
        }
    }
}
