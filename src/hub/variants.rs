//! Variants of a checkpoint: copies, base and instruct, other types of weights. They have one shape.

use super::weights::Weights;

/// Parts of a name that tell how a checkpoint was trained or is written, not its shape.
const TRAINING: [&str; 13] = [
    "instruct", "inst", "chat", "it", "pt", "base", "hf", "2507", "thinking", "meta", "sft", "dpo", "text",
];

/// Owners that publish copies of other owners' checkpoints, in other types of weights, under the same names.
const COPIERS: [&str; 30] = [
    "unsloth",
    "mlx-community",
    "lmstudio-community",
    "bartowski",
    "thebloke",
    "ggml-org",
    "maziyarpanahi",
    "redhatai",
    "neuralmagic",
    "nm-testing",
    "nvidia",
    "intel",
    "amd",
    "cyankiwi",
    "quanttrio",
    "kaitchup",
    "hugging-quants",
    "techxgenus",
    "casperhansen",
    "nousresearch",
    "axolotl-quants",
    "axolotl-ai-co",
    "llamafactory",
    "ai-modelscope",
    "llm-research",
    "modelscope",
    "swift",
    "onnx-community",
    "openvino",
    "opea",
];

/// Owners of one publisher, by the id that is current.
const RENAMED: [(&str, &str); 3] = [
    ("thudm", "zai-org"),
    ("zhipuai", "zai-org"),
    ("coherelabs", "cohereforai"),
];

/// Returns true if a repository of this owner with the name of another's checkpoint is a copy of it.
pub(crate) fn is_copier(owner: &str) -> bool {
    COPIERS.contains(&owner.to_ascii_lowercase().as_str())
}

/// Returns true if both owners are one publisher.
pub(crate) fn is_same_owner(one: &str, other: &str) -> bool {
    let current = |owner: &str| {
        let owner = owner.to_ascii_lowercase();
        let renamed = RENAMED.iter().find(|(old, _)| *old == owner);
        renamed.map_or(owner, |(_, new)| (*new).to_owned())
    };
    current(one) == current(other)
}

/// What a name says of a checkpoint's shape, with the type of its weights taken off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Parts of the name without those of training, in lower case; all of them if none tells a size, since `base` may be the
    /// size then (`vit-base-patch16-224`).
    parts: Vec<String>,
}

impl Shape {
    /// Reads a name without its owner and without what tells the weights.
    pub fn of(name: &str) -> Self {
        let lower = name.to_ascii_lowercase();
        let all: Vec<String> = lower.split(['-', '_']).map(str::to_owned).collect();
        let is_sized = all.iter().any(|part| is_size(part));
        let parts = all
            .into_iter()
            .filter(|part| !is_sized || !TRAINING.contains(&part.as_str()))
            .collect();
        Self { parts }
    }
}

/// Returns true for a part that tells a size: `7b`, `1.5b`, `8x7b`, `e2b`, `a3b`, `256m`.
fn is_size(part: &str) -> bool {
    let Some(number) = part.strip_suffix(['b', 'm']) else {
        return false;
    };
    let number = number.trim_start_matches(['e', 'a']);
    number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'x'))
}

/// A name split into what tells the shape and what tells the weights.
pub(crate) fn split(owner: &str, name: &str) -> (String, Shape, Weights) {
    let (rest, weights) = Weights::split(owner, name);
    let shape = Shape::of(&rest);
    (rest, shape, weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_have_one_shape_and_other_sizes_another() {
        let same = [
            ("Qwen3-4B-Instruct-2507", "Qwen3-4B"),
            ("Meta-Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
            ("gemma-3-4b-pt", "gemma-3-4b-it"),
            ("Qwen3-VL-8B-Thinking", "Qwen3-VL-8B-Instruct"),
            ("Llama-2-7b-chat-hf", "Llama-2-7b-hf"),
            ("InternVL3_5-8B-HF", "InternVL3_5-8B"),
            ("Mixtral-8x7B-Instruct-v0.1", "Mixtral-8x7B-v0.1"),
        ];
        for (one, other) in same {
            assert_eq!(Shape::of(one), Shape::of(other), "{one}");
        }
        let different = [
            ("Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-3B-Instruct"),
            ("Qwen2.5-VL-7B-Instruct", "Qwen2.5-7B-Instruct"),
            ("Qwen2.5-7B-Instruct-1M", "Qwen2.5-7B-Instruct"),
            ("Mistral-7B-v0.3", "Mistral-7B-v0.1"),
            ("vit-base-patch16-224", "vit-patch16-224"),
            ("gemma-3n-E4B-it", "gemma-3-4b-it"),
            ("Qwen3-30B-A3B", "Qwen3-30B"),
            ("gpt2-base", "gpt2"),
        ];
        for (one, other) in different {
            assert_ne!(Shape::of(one), Shape::of(other), "{one}");
        }
    }
}
