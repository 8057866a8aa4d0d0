//! Finds fields of a record that this version does not know.

use serde_json::Value;

use super::Record;

/// Paths of the fields in a record's text that this version does not know, such as `results[3].kernel.sparsity`, in the
/// order of the text. A program that rewrites the record would drop them, so it should warn about them.
pub fn unknown_fields(text: &str, record: &Record) -> Vec<String> {
    let (Ok(given), Ok(known)) = (serde_json::from_str(text), serde_json::to_value(record)) else {
        return Vec::new();
    };
    let mut unknown = Vec::new();
    compare(&given, &known, String::new(), &mut unknown);
    unknown
}

fn compare(given: &Value, known: &Value, path: String, unknown: &mut Vec<String>) {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            // Empty and absent values are omitted when a record is written.
            let stated = given.iter().filter(|(_, value)| !is_empty(value));
            for (name, value) in stated {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                match known.get(name) {
                    Some(known) => compare(value, known, path, unknown),
                    None => unknown.push(path),
                }
            }
        }
        (Value::Array(given), Value::Array(known)) => {
            for (i, (given, known)) in given.iter().zip(known).enumerate() {
                compare(given, known, format!("{path}[{i}]"), unknown);
            }
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
