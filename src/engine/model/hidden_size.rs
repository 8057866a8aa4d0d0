//! Width of a model as transformers' integration of DeepSpeed reads it (`integrations/deepspeed.py`, 5.17), the rows of its
//! table of tokens, and what its cache keeps of a position.

use serde_json::{Map, Value};

/// Names of `hidden_size` in a `config.json`: its own, and those that configuration classes map to it (`attribute_map`).
const NAMES: [&str; 3] = ["hidden_size", "n_embd", "d_model"];

/// Returns the `hidden_size` of a configuration, or the largest of its `hidden_sizes`, or those of its `text_config`. `None`
/// if the file leaves it to the default of its class.
pub(super) fn hidden_size(config: &Map<String, Value>) -> Option<u64> {
    let text = config.get("text_config").and_then(Value::as_object);
    [Some(config), text].into_iter().flatten().find_map(own)
}

/// Returns the `vocab_size` of a configuration, or that of its language model.
pub(super) fn vocabulary(config: &Map<String, Value>) -> Option<u64> {
    sections(config).find_map(|section| section.get("vocab_size")?.as_u64())
}

/// Returns the elements of keys and values that all layers of the language model keep of a position, where each keeps those of
/// its own heads.
pub(super) fn cached(config: &Map<String, Value>) -> Option<u64> {
    sections(config).find_map(|section| {
        let number = |name: &str| section.get(name).and_then(Value::as_u64);
        let (layers, heads) = (number("num_hidden_layers")?, number("num_attention_heads")?);
        let width = number("head_dim").or_else(|| number("hidden_size")?.checked_div(heads))?;
        let factors = [layers, number("num_key_value_heads").unwrap_or(heads), width];
        factors.into_iter().try_fold(2, u64::checked_mul)
    })
}

/// A configuration, and that of its language model.
fn sections(config: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let names = ["text_config", "llm_config", "language_config"].into_iter();
    std::iter::once(config).chain(names.filter_map(|name| config.get(name)?.as_object()))
}

fn own(section: &Map<String, Value>) -> Option<u64> {
    let one = NAMES.iter().find_map(|name| section.get(*name)?.as_u64());
    one.or_else(|| {
        section
            .get("hidden_sizes")?
            .as_array()?
            .iter()
            .filter_map(Value::as_u64)
            .max()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_tokens_is_that_of_the_language_model() {
        let rows = |text: &str| vocabulary(&serde_json::from_str(text).expect("an object"));
        assert_eq!(rows(r#"{"vocab_size": 9, "text_config": {"vocab_size": 8}}"#), Some(9));
        assert_eq!(rows(r#"{"text_config": {"vocab_size": 8}}"#), Some(8));
        assert_eq!(rows(r#"{"vision_config": {"vocab_size": 8}}"#), None);
    }

    #[test]
    fn a_cache_has_the_heads_of_keys_and_values() {
        let elements = |text: &str| cached(&serde_json::from_str(text).expect("an object"));
        let own = r#""num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 20"#;
        assert_eq!(elements(&format!("{{{own}}}")), Some(2 * 3 * 4 * 5));
        let fewer = format!(r#"{{"text_config": {{{own}, "num_key_value_heads": 2, "head_dim": 8}}}}"#);
        assert_eq!(elements(&fewer), Some(2 * 3 * 2 * 8));
        assert_eq!(elements("{}"), None);
    }

    #[test]
    fn the_whole_model_comes_before_its_text() {
        let width = |text: &str| hidden_size(&serde_json::from_str(text).expect("an object"));
        assert_eq!(
            width(r#"{"hidden_size": 64, "text_config": {"hidden_size": 32}}"#),
            Some(64)
        );
        assert_eq!(width(r#"{"text_config": {"hidden_size": 32}}"#), Some(32));
        assert_eq!(width(r#"{"hidden_sizes": [8, 64, 16]}"#), Some(64));
        assert_eq!(width(r#"{"n_embd": 768}"#), Some(768));
        assert_eq!(width(r#"{"vision_config": {"hidden_size": 32}}"#), None);
    }
}
