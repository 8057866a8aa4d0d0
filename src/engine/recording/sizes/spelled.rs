//! Converts lines of all sizes to JSON: puts `$k` in quotes and replaces layouts by numbers.

use std::collections::HashMap;

use super::super::fault::Fault;
use super::super::layout::Layout;
use super::super::limits::MOST_DECLARED;
use super::super::number::Count;
use crate::dtype::DType;
use crate::names::{self, Name};

/// Layout of a tensor at all sizes.
pub(super) struct AnyLayout {
    dtype: DType,
    shape: Vec<Count>,
    strides: Option<Vec<Count>>,
}

impl AnyLayout {
    /// Parses `bf16[[2,"$4"],null]`, with `$k` in quotes.
    fn read(text: &str) -> Result<Self, Fault> {
        let wrong = || {
            Fault::Json(format!(
                "\"{}\" is no layout",
                text.chars().take(40).collect::<String>()
            ))
        };
        let at = text.find('[').ok_or_else(wrong)?;
        let dtype = serde_json::from_value(text[..at].into()).map_err(|_| wrong())?;
        let (shape, strides) = serde_json::from_str(&quoted(&text[at..])).map_err(|_| wrong())?;
        Ok(Self { dtype, shape, strides })
    }

    /// Returns the layout, given the values of the polynomials.
    pub fn at(&self, numbers: &[i64]) -> Result<Layout, Fault> {
        let values = |all: &[Count]| all.iter().map(|n| n.at(numbers)).collect::<Result<Vec<u64>, Fault>>();
        let strides = self.strides.as_deref().map(values).transpose()?;
        Layout::new(self.dtype, &values(&self.shape)?, strides.as_deref())
    }
}

/// Layouts and operations that lines write in full, numbered.
#[derive(Default)]
pub(super) struct Spelled {
    pub layouts: Vec<AnyLayout>,
    known: HashMap<Box<str>, u64>,
    pub operations: Vec<Name>,
    named: HashMap<Name, u64>,
}

impl Spelled {
    /// Returns the number of a layout; adds it if it is new.
    pub fn layout(&mut self, text: &str) -> Result<u64, Fault> {
        if let Some(&id) = self.known.get(text) {
            return Ok(id);
        }
        let id = self.layouts.len();
        if id >= MOST_DECLARED {
            return Err(Fault::TooMuch("layouts"));
        }
        self.layouts.push(AnyLayout::read(text)?);
        self.known.insert(text.into(), id as u64);
        Ok(id as u64)
    }

    /// Returns the number of an operation; adds it if it is new.
    pub fn operation(&mut self, name: &str) -> Result<u64, Fault> {
        if self.operations.len() >= MOST_DECLARED {
            return Err(Fault::TooMuch("operations"));
        }
        let name = names::keep(name);
        let next = self.operations.len() as u64;
        let id = *self.named.entry(name).or_insert(next);
        if id == next {
            self.operations.push(name);
        }
        Ok(id)
    }

    /// Converts a line to a recording's form, except that varying numbers become `"$k"`.
    pub fn line(&mut self, line: &str) -> Result<String, Fault> {
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(at) = rest.find(['"', '$']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            rest = match rest.starts_with('$') {
                true => quote(&mut out, rest),
                false => self.text(&mut out, rest)?,
            };
        }
        out.push_str(rest);
        Ok(out)
    }

    /// Copies a JSON string to its end, with a tensor's layout as a number; returns the text after it.
    fn text<'a>(&mut self, out: &mut String, text: &'a str) -> Result<&'a str, Fault> {
        let bytes = text.as_bytes();
        let mut end = 1;
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let (Some(inside), Some(rest)) = (text.get(1..end), text.get(end + 1..)) else {
            return Err(Fault::Json("a text in it does not end".into()));
        };
        match inside.starts_with('#').then(|| inside.split_once(':')).flatten() {
            Some((storage, lies)) if lies.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                // The offset follows the brackets; no rule uses it.
                let end = lies.rfind(']').map_or(lies.len(), |at| at + 1);
                let id = self.layout(&lies[..end])?;
                out.push_str(&format!("\"{storage}:{id}\""));
            }
            _ => out.push_str(&text[..=end]),
        }
        Ok(rest)
    }
}

/// Copies `$k` in quotes; returns the text after it.
fn quote<'a>(out: &mut String, text: &'a str) -> &'a str {
    let digits = text[1..].bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(1 + digits);
    out.push('"');
    out.push_str(number);
    out.push('"');
    rest
}

/// Returns a layout with each `$k` in quotes.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = quote(&mut out, &rest[at..]);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_get_numbers_and_bare_polynomials_quotes() {
        let mut spelled = Spelled::default();
        let line =
            r##"{"a":["#3:bf16[[2,$4],null]",[$0,-1],"=a \"$1\""],"o":["#3:bf16[[2,$4],null]:$7","#4:i64[[],null]"]}"##;
        let read = spelled.line(line).unwrap();
        let expected = r##"{"a":["#3:0",["$0",-1],"=a \"$1\""],"o":["#3:0","#4:1"]}"##;
        assert_eq!(read, expected);
        let layout = spelled.layouts[0].at(&[0, 0, 0, 0, 5]).unwrap();
        assert_eq!((layout.dtype, &layout.shape[..]), (DType::Bf16, &[2, 5][..]));
        assert!(spelled.layouts[0].at(&[1]).is_err());
    }

    #[test]
    fn texts_without_an_end_are_refused() {
        for line in ["{\"a", "\"\\", "\"é\\"] {
            assert!(Spelled::default().line(line).is_err(), "{line}");
        }
        assert!(Spelled::default().line(r##"["#1:nothing"]"##).is_err());
        assert!(Spelled::default().line(r##"["#1:bf16[[é],null]"]"##).is_err());
    }
}
