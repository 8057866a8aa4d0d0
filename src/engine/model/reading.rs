//! Reads the typed configuration of a family by its `model_type`.

use serde_json::{Map, Value};

use super::config::ClassDefaults;
use super::config::class_defaults::SizeLog;
use super::config::section::Section;
use super::families::{self, ModelConfig, model_types};
use super::{ModelError, architectures, stops};
use crate::suggest::suggest;

/// Reads a whole configuration by its `model_type`, and says which sizes it leaves to transformers' classes.
///
/// No other type is read as one of these: a decoder of another family has norms, biases, experts or layers of its own,
/// and its file does not describe everything that its class builds.
pub(super) fn read(object: &Map<String, Value>) -> Result<(ModelConfig, ClassDefaults), ModelError> {
    let log = SizeLog::default();
    let config = read_noting(object, &log)?;
    Ok((config, log.into_defaults()))
}

fn read_noting(object: &Map<String, Value>, log: &SizeLog) -> Result<ModelConfig, ModelError> {
    let named = Section::root(object, "Hugging Face", log).optional_text("model_type")?;
    let Some(known) = named.and_then(families::known) else {
        let stopped = named.and_then(|name| stops::error(name, object));
        return Err(stopped.unwrap_or_else(|| unsupported(named)));
    };
    if let Some(text) = families::known_text(object) {
        return text.read(&Section::root(object, text.model_type.name, log));
    }
    architectures::check(object, known.model_type)?;
    known.read(&Section::root(object, known.model_type.name, log))
}

/// Makes the error for a `model_type` that is not read: the nearest one that is, if one is near, and the next step.
fn unsupported(named: Option<&str>) -> ModelError {
    let names: Vec<&'static str> = model_types().map(|model_type| model_type.name).collect();
    let Some(name) = named else {
        return ModelError("`model_type` is missing; a config.json states one, such as \"llama\"".into());
    };
    let name = shorten(name);
    let record = "`vramscope record --model config.json` records any model without a GPU";
    ModelError(match suggest(&name, &names).first() {
        Some(nearest) => format!(
            "model_type \"{name}\" is not supported, and no other is read in its place: its layers may differ (nearest: \
             \"{nearest}\"). Write \"{nearest}\" only where both build the same layers; {record}"
        ),
        None => format!("model_type \"{name}\" is not supported, and no name that is known is near; {record}"),
    })
}

fn shorten(name: &str) -> String {
    name.chars().take(60).collect()
}
