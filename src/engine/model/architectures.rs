//! Refusal of files that name other classes than those that are simulated.

use serde_json::{Map, Value};

use super::ModelError;
use super::facts::ModelType;

/// Refuses a file whose `architectures` name other classes than the simulated one: a part of the model, or another
/// head. A file without `architectures` passes.
pub(super) fn check(object: &Map<String, Value>, model_type: &ModelType) -> Result<(), ModelError> {
    let given: Vec<&str> = match object.get("architectures") {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let (Some(name), false) = (
        given.first(),
        given.iter().any(|name| model_type.classes.contains(name)),
    ) else {
        return Ok(());
    };
    let name: String = name.chars().take(60).collect();
    Err(ModelError(format!(
        "`architectures` names {name}, but of {} only {} is simulated; write that, or leave `architectures` out, where it \
         is what you train",
        model_type.name, model_type.classes[0]
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::families::{known, model_types};

    #[test]
    fn every_family_has_its_class() {
        for model_type in model_types() {
            assert!(!model_type.classes.is_empty(), "{}", model_type.name);
        }
    }

    #[test]
    fn a_part_of_a_model_is_not_the_whole() {
        let file = |class: &str| {
            serde_json::json!({"architectures": [class]})
                .as_object()
                .cloned()
                .unwrap()
        };
        let [mllama, llama] = ["mllama", "llama"].map(|name| known(name).unwrap().model_type);
        let why = check(&file("MllamaForCausalLM"), mllama).unwrap_err().to_string();
        assert!(
            why.contains("MllamaForCausalLM") && why.contains("MllamaForConditionalGeneration"),
            "{why}"
        );
        assert!(check(&file("LlamaForSequenceClassification"), llama).is_err());
        assert!(check(&file("LlamaForCausalLM"), llama).is_ok());
        assert!(check(&Map::new(), llama).is_ok());
    }
}
