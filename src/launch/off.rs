//! Values that switch a key off.

use serde_json::Value;

use crate::entry::Entry;

/// Returns `OBJECT.` for an entry `OBJECT.enabled` that is false: the object's other keys do nothing.
pub(crate) fn switched_off(entry: &Entry) -> Option<String> {
    let object = entry.key.strip_suffix("enabled").filter(|object| object.ends_with('.'));
    object.filter(|_| is_off(&entry.value, "")).map(str::to_owned)
}

/// Returns true for a value that switches a key off, or for its `default`, where that is none of these.
pub(crate) fn is_off(value: &Value, default: &str) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) if default.is_empty() => {
            matches!(text.to_ascii_lowercase().as_str(), "" | "no" | "none" | "false" | "off")
        }
        Value::String(text) => text.eq_ignore_ascii_case(default),
        Value::Bool(truth) if default.is_empty() => !truth,
        Value::Number(number) if default.is_empty() => number.as_f64() == Some(0.0),
        Value::Number(number) => number.as_f64() == default.parse().ok(),
        Value::Bool(truth) => default.parse() == Ok(*truth),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}
