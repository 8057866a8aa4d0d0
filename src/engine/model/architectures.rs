//! Classes of each family that are simulated, and the refusal of files that name others.

use serde_json::{Map, Value};

use super::ModelError;

/// Each `model_type` with the class of transformers 5.17 that is simulated, then other names that files use for it:
/// names of remote code, and for classifiers those of the checkpoints that they are fine-tuned from.
const CLASSES: [(&str, &[&str]); 36] = [
    ("llava", &["LlavaForConditionalGeneration"]),
    ("llava_next", &["LlavaNextForConditionalGeneration"]),
    ("qwen2_vl", &["Qwen2VLForConditionalGeneration"]),
    ("qwen2_5_vl", &["Qwen2_5_VLForConditionalGeneration"]),
    ("qwen3_vl", &["Qwen3VLForConditionalGeneration"]),
    ("internvl", &["InternVLForConditionalGeneration"]),
    ("internvl_chat", &["InternVLChatModel"]),
    ("paligemma", &["PaliGemmaForConditionalGeneration"]),
    ("smolvlm", &["SmolVLMForConditionalGeneration"]),
    ("idefics3", &["Idefics3ForConditionalGeneration"]),
    ("gemma3", &["Gemma3ForConditionalGeneration"]),
    ("mllama", &["MllamaForConditionalGeneration"]),
    ("blip-2", &["Blip2ForConditionalGeneration"]),
    ("clip", &["CLIPModel"]),
    ("siglip", &["SiglipModel"]),
    (
        "vit",
        &["ViTForImageClassification", "ViTModel", "ViTForMaskedImageModeling"],
    ),
    (
        "videomae",
        &[
            "VideoMAEForVideoClassification",
            "VideoMAEModel",
            "VideoMAEForPreTraining",
        ],
    ),
    ("gpt2", &["GPT2LMHeadModel"]),
    ("opt", &["OPTForCausalLM"]),
    ("phi", &["PhiForCausalLM"]),
    ("llama", &["LlamaForCausalLM", "LLaMAForCausalLM"]),
    ("mistral", &["MistralForCausalLM"]),
    ("qwen2", &["Qwen2ForCausalLM"]),
    ("qwen3", &["Qwen3ForCausalLM"]),
    ("gemma", &["GemmaForCausalLM"]),
    ("gemma2", &["Gemma2ForCausalLM"]),
    ("gemma3_text", &["Gemma3ForCausalLM"]),
    ("phi3", &["Phi3ForCausalLM"]),
    ("cwm", &["CwmForCausalLM"]),
    ("seed_oss", &["SeedOssForCausalLM"]),
    ("vaultgemma", &["VaultGemmaForCausalLM"]),
    ("ernie4_5", &["Ernie4_5ForCausalLM"]),
    ("granite", &["GraniteForCausalLM"]),
    ("helium", &["HeliumForCausalLM"]),
    ("ministral3", &["Ministral3ForCausalLM"]),
    ("smollm3", &["SmolLM3ForCausalLM"]),
];

/// Refuses a file whose `architectures` name other classes than the simulated one: a part of the model, or another
/// head. A file without `architectures` passes.
pub(super) fn check(object: &Map<String, Value>, model_type: &str) -> Result<(), ModelError> {
    let given: Vec<&str> = match object.get("architectures") {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let classes = CLASSES.iter().find(|(family, _)| *family == model_type);
    let Some((_, classes)) = classes.filter(|(_, classes)| !given.iter().any(|name| classes.contains(name))) else {
        return Ok(());
    };
    let Some(name) = given.first() else {
        return Ok(());
    };
    let name: String = name.chars().take(60).collect();
    Err(ModelError(format!(
        "`architectures` names {name}, but of {model_type} only {} is simulated; write that, or leave `architectures` out, \
         where it is what you train",
        classes[0]
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MODEL_TYPES;

    #[test]
    fn every_family_has_its_class() {
        assert_eq!(CLASSES.map(|(model_type, _)| model_type), MODEL_TYPES);
    }

    #[test]
    fn a_part_of_a_model_is_not_the_whole() {
        let file = |class: &str| {
            serde_json::json!({"architectures": [class]})
                .as_object()
                .cloned()
                .unwrap()
        };
        let why = check(&file("MllamaForCausalLM"), "mllama").unwrap_err().to_string();
        assert!(
            why.contains("MllamaForCausalLM") && why.contains("MllamaForConditionalGeneration"),
            "{why}"
        );
        assert!(check(&file("LlamaForSequenceClassification"), "llama").is_err());
        assert!(check(&file("LlamaForCausalLM"), "llama").is_ok());
        assert!(check(&Map::new(), "llama").is_ok());
    }
}
