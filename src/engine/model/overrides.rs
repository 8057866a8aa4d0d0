//! Applies a case's changes of a model's shape to its `config.json` before it is read.

use serde_json::{Map, Value};

use super::Case;
use crate::setup::Setup;

/// Applies `image`, `frames`, `layers`, `cross` and `patch` of `case` if they mean something to the family, and ignores
/// them otherwise, as the measured cases did.
pub(super) fn apply(config: &mut Map<String, Value>, case: &Case) {
    apply_setup(config, &case.setup);
    for (key, value) in &case.shape {
        apply_shape(config, key, value);
    }
}

/// Applies the keys of a setup that change the model: `image` and `frames`.
pub(super) fn apply_setup(config: &mut Map<String, Value>, setup: &Setup) {
    if let Some(image) = setup.image {
        match model_type(config) {
            "llava" | "paligemma" => set_nested(config, "vision_config", "image_size", image.into()),
            "vit" | "videomae" => set(config, "image_size", image.into()),
            _ => {}
        }
    }
    if let Some(frames) = setup.frames
        && model_type(config) == "videomae"
    {
        set(config, "num_frames", frames.into());
    }
}

fn apply_shape(config: &mut Map<String, Value>, key: &str, value: &Value) {
    match (key, model_type(config)) {
        ("layers", "mllama") => set_nested(config, "text_config", "num_hidden_layers", value.clone()),
        ("cross", "mllama") => set_nested(config, "text_config", "cross_attention_layers", value.clone()),
        ("patch", "vit") => set(config, "patch_size", value.clone()),
        _ => {}
    }
}

fn model_type(config: &Map<String, Value>) -> &str {
    config.get("model_type").and_then(Value::as_str).unwrap_or_default()
}

fn set(config: &mut Map<String, Value>, key: &str, value: Value) {
    config.insert(key.into(), value);
}

fn set_nested(config: &mut Map<String, Value>, section: &str, key: &str, value: Value) {
    if let Some(Value::Object(inner)) = config.get_mut(section) {
        set(inner, key, value);
    }
}
