//! Width of a model as transformers' integration of DeepSpeed reads it (`integrations/deepspeed.py`, 5.17).

use serde_json::{Map, Value};

/// Names of `hidden_size` in a `config.json`: its own, and those that configuration classes map to it (`attribute_map`).
const NAMES: [&str; 3] = ["hidden_size", "n_embd", "d_model"];

/// Returns the `hidden_size` of a configuration, or the largest of its `hidden_sizes`, or those of its `text_config`. `None`
/// if the file leaves it to the default of its class.
pub(super) fn hidden_size(config: &Map<String, Value>) -> Option<u64> {
    let text = config.get("text_config").and_then(Value::as_object);
    [Some(config), text].into_iter().flatten().find_map(own)
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
