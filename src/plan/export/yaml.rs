//! Writes YAML of maps, lists and scalars in the style people use.

use serde_json::Value;

/// Writes a document: comments, then the entries of a map in the given order.
pub(super) fn document(notes: &[String], entries: &[(&str, Value)]) -> String {
    let mut out: String = notes.iter().map(|note| format!("# {note}\n")).collect();
    for (key, value) in entries {
        write(&mut out, key, value, 0);
    }
    out
}

fn write(out: &mut String, key: &str, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            *out += &format!("{indent}{key}:\n");
            for (key, value) in map {
                write(out, key, value, depth + 1);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            *out += &format!("{indent}{key}:\n");
            for value in list {
                *out += &format!("{indent}  - {value}\n");
            }
        }
        other => *out += &format!("{indent}{key}: {}\n", scalar(other)),
    }
}

/// Writes a scalar: without quotes if YAML reads it as text, otherwise as JSON, which is valid YAML.
fn scalar(value: &Value) -> String {
    let plain = |text: &str| {
        let letters = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '.')
            && text.chars().all(letters)
            && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_lowercase().as_str())
    };
    match value {
        Value::String(text) if plain(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_are_plain_and_what_could_be_misread_is_quoted() {
        let text = document(
            &["a note".to_owned()],
            &[
                ("bf16", json!(true)),
                ("optim", json!("adamw_torch_fused")),
                ("precision", json!("16-mixed")),
                ("answer", json!("no")),
                ("list", json!(["q_proj", "v_proj"])),
                ("nested", json!({"use_reentrant": false})),
            ],
        );
        assert_eq!(
            text,
            "# a note\nbf16: true\noptim: adamw_torch_fused\nprecision: \"16-mixed\"\nanswer: \"no\"\nlist:\n  - \
             \"q_proj\"\n  - \"v_proj\"\nnested:\n  use_reentrant: false\n"
        );
    }
}
