//! Applies a case's changes of a model's shape to its `config.json` before it is read.

use serde_json::{Map, Value};

use super::{Case, families};
use crate::setup::Setup;

/// Applies `image`, `frames`, `layers`, `cross` and `patch` of `case` if they mean something to the family, and ignores
/// them otherwise, as the measured cases did.
pub(super) fn apply(config: &mut Map<String, Value>, case: &Case) {
    apply_setup(config, &case.setup);
    for (key, value) in &case.shape {
        set(config, key, value.clone());
    }
}

/// Applies the keys of a setup that change the model: `image` and `frames`.
pub(super) fn apply_setup(config: &mut Map<String, Value>, setup: &Setup) {
    for (setting, value) in [("image", setup.image), ("frames", setup.frames)] {
        if let Some(value) = value {
            set(config, setting, value.into());
        }
    }
}

/// Replaces the key that the family has for a setting, if it has one.
fn set(config: &mut Map<String, Value>, setting: &str, value: Value) {
    let model_type = config.get("model_type").and_then(Value::as_str).unwrap_or_default();
    let facts = families::known(model_type).and_then(families::Known::facts);
    let Some(of) = facts.and_then(|facts| facts.overrides.iter().find(|of| of.setting == setting)) else {
        return;
    };
    let section = match of.section {
        None => Some(config),
        Some(section) => config.get_mut(section).and_then(Value::as_object_mut),
    };
    if let Some(section) = section {
        section.insert(of.key.into(), value);
    }
}
