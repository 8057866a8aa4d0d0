//! Describes a setup in the words of its flags.

use serde_json::{Map, Value};
use vramscope_engine::Setup;

use super::wrap::NO_BREAK;

/// Fields that are always shown; others are only shown if they differ from the default.
const ALWAYS: [&str; 5] = ["batch", "seq", "precision", "optim", "attn"];

/// Describes a setup in one line: `batch 4 · seq 2048 · precision bf16 · ckpt full`, with no-break spaces between a
/// field and its value.
pub fn setup_words(setup: &Setup) -> String {
    setup_words_without("", setup)
}

/// Describes a setup in one line, without one field.
pub fn setup_words_without(left_out: &str, setup: &Setup) -> String {
    let defaults = fields(&Setup::default());
    let shown = fields(&setup.batched())
        .into_iter()
        .filter(|(name, _)| name != left_out)
        .filter(|(name, value)| ALWAYS.contains(&name.as_str()) || defaults.get(name) != Some(value));
    let words: Vec<String> = shown.map(|(name, value)| word(&name, &value)).collect();
    words.join(" · ")
}

fn fields(setup: &Setup) -> Map<String, Value> {
    match serde_json::to_value(setup) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn word(name: &str, value: &Value) -> String {
    let value = match value {
        Value::Bool(true) => return name.into(),
        Value::String(text) => text.clone(),
        Value::Array(sides) => sides_words(name, sides),
        other => other.to_string(),
    };
    format!("{name}{NO_BREAK}{value}")
}

/// Formats sizes as `24x32`, `512,2048` or `480x640,300x200`.
fn sides_words(name: &str, sides: &[Value]) -> String {
    let words: Vec<String> = sides
        .iter()
        .map(|side| match side {
            Value::Array(inner) => sides_words("grid", inner),
            other => other.to_string(),
        })
        .collect();
    words.join(if name == "grid" { "x" } else { "," })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_engine::setup::Freeze;

    #[test]
    fn only_what_differs_is_told() {
        let setup = Setup {
            batch: 4,
            grid: Some([24, 32]),
            freeze: Freeze::VISION,
            clip: true,
            ..Setup::default()
        };
        assert_eq!(
            setup_words(&setup).replace(NO_BREAK, " "),
            "batch 4 · seq 2048 · grid 24x32 · precision bf16 · optim adamw · attn sdpa · freeze vision · clip"
        );
    }
}
