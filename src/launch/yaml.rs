//! Reads YAML as PyYAML does, with the line of each entry.
//!
//! PyYAML resolves plain scalars by YAML 1.1: `yes` and `on` are true, and `1e-4` is text, since its numbers need a dot.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Number, Value};

use crate::entry::{Entry, flatten};

/// Deepest nesting of a file.
const MOST_DEPTH: usize = 32;

/// Reads the entries of a mapping, those of mappings within it under dotted keys.
///
/// # Errors
/// Says where the text is no YAML, or that it holds no mapping, or more than is read (anchors, several documents).
pub(crate) fn read(text: &str) -> Result<Vec<Entry>, String> {
    let mut events = Vec::new();
    for item in Parser::new_from_str(text) {
        let (event, span) = item.map_err(|error| error.to_string())?;
        events.push((event, span.start.line()));
    }
    let mut reader = Reader { events: &events, at: 0 };
    let entries = reader.document()?;
    match reader.events[reader.at..]
        .iter()
        .any(|(event, _)| matches!(event, Event::DocumentStart(_)))
    {
        true => Err("it holds several documents; give one".to_owned()),
        false => Ok(entries),
    }
}

/// Reads the value that a text holds, whatever it is: the first document's.
pub(crate) fn value(text: &str) -> Option<Value> {
    let mut events = Vec::new();
    for item in Parser::new_from_str(text) {
        let (event, span) = item.ok()?;
        let is_last = matches!(event, Event::DocumentEnd);
        events.push((event, span.start.line()));
        if is_last {
            break;
        }
    }
    let at = events
        .iter()
        .position(|(event, _)| matches!(event, Event::DocumentStart(_)))?;
    let mut reader = Reader {
        events: &events,
        at: at + 1,
    };
    reader.value(0).ok()
}

struct Reader<'a> {
    events: &'a [(Event<'a>, usize)],
    at: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Result<(&Event<'_>, usize), String> {
        let (event, line) = self.events.get(self.at).ok_or("it ends too early")?;
        self.at += 1;
        Ok((event, *line))
    }

    fn document(&mut self) -> Result<Vec<Entry>, String> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(_) | Event::Nothing, _) => {}
                (Event::MappingStart(..), _) => {
                    let mut out = Vec::new();
                    for (key, value, line) in self.mapping(0)? {
                        flatten(&key, value, line, &mut out);
                    }
                    return Ok(out);
                }
                (Event::StreamEnd | Event::DocumentEnd, _) => return Err("it is empty".to_owned()),
                (_, line) => return Err(format!("line {line}: expected keys with values, as in `batch: 4`")),
            }
        }
    }

    /// Keys, values and lines of a mapping whose start was read.
    fn mapping(&mut self, depth: usize) -> Result<Vec<(String, Value, usize)>, String> {
        let mut out: Vec<(String, Value, usize)> = Vec::new();
        loop {
            let (key, line) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(out),
                (Event::Scalar(key, ..), line) => (key.to_string(), line),
                (_, line) => return Err(format!("line {line}: a key is no text")),
            };
            let value = self.value(depth + 1)?;
            // Of equal keys, PyYAML keeps the last.
            out.retain(|(known, ..)| *known != key);
            out.push((key, value, line));
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        match self.next()? {
            (_, line) if depth > MOST_DEPTH => Err(format!("line {line}: nested more than {MOST_DEPTH} deep")),
            (Event::Scalar(text, style, _, tag), _) => Ok(match (style, tag) {
                (ScalarStyle::Plain, None) => plain(text),
                _ => Value::String(text.to_string()),
            }),
            (Event::SequenceStart(..), _) => {
                let mut items = Vec::new();
                while !matches!(self.events.get(self.at), Some((Event::SequenceEnd, _))) {
                    items.push(self.value(depth + 1)?);
                }
                self.at += 1;
                Ok(Value::Array(items))
            }
            (Event::MappingStart(..), _) => {
                let all = self.mapping(depth)?;
                Ok(Value::Object(
                    all.into_iter().map(|(key, value, _)| (key, value)).collect(),
                ))
            }
            (Event::Alias(_), line) => Err(format!(
                "line {line}: anchors (`*name`) are not read; write the value out"
            )),
            (_, line) => Err(format!("line {line}: expected a value")),
        }
    }
}

/// Resolves a plain scalar by YAML 1.1, as PyYAML's `Resolver` does.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Value::Bool(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => return Value::Bool(false),
        _ => {}
    }
    let digits = text.replace('_', "");
    let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(&digits);
    let is_decimal = unsigned == "0" || unsigned.starts_with(|c: char| ('1'..='9').contains(&c));
    if is_decimal
        && unsigned.bytes().all(|b| b.is_ascii_digit())
        && let Ok(number) = digits.trim_start_matches('+').parse::<i64>()
    {
        return number.into();
    }
    let is_float = unsigned.contains('.')
        && unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.chars().any(|c| c.is_ascii_digit())
        && unsigned
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    let float = digits
        .parse::<f64>()
        .ok()
        .filter(|_| is_float)
        .and_then(Number::from_f64);
    float.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn scalars_are_resolved_as_by_pyyaml() {
        for (text, value) in [
            ("yes", json!(true)),
            ("off", json!(false)),
            ("~", json!(null)),
            ("1e-4", json!("1e-4")),
            ("1.0e-4", json!(1e-4)),
            ("1_000", json!(1000)),
            ("-3", json!(-3)),
            ("07", json!("07")),
            ("1.", json!(1.0)),
            ("qwen2_vl", json!("qwen2_vl")),
            ("1.2.3", json!("1.2.3")),
        ] {
            assert_eq!(plain(text), value, "{text}");
        }
    }

    #[test]
    fn entries_have_dotted_keys_and_lines() {
        let text = "### model\nbase: \"yes\"\nlist: [a, 2]\nnested:\n  inner:\n    deep: on\nbase: other\n";
        let entries = read(text).unwrap();
        let all: Vec<_> = entries
            .iter()
            .map(|e| (e.key.as_str(), e.value.clone(), e.line))
            .collect();
        assert_eq!(
            all,
            [
                ("list", json!(["a", 2]), 3),
                ("nested.inner.deep", json!(true), 4),
                ("base", json!("other"), 7)
            ]
        );
    }

    #[test]
    fn what_is_no_mapping_is_refused() {
        for text in ["", "- a\n", "just text", "a: [1", "a: *b\n", "a: 1\n---\nb: 2\n"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
