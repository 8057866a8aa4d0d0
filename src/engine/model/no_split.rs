//! Modules that transformers keeps whole on one device (`_no_split_modules` of 5.17).

use std::collections::HashSet;

use super::Model;

/// A `model_type`, the paths of its modules, and those of its classes that it has no module of in each line, as `no_split.py`
/// wrote them.
const TABLE: &str = include_str!("no_split.tsv");

/// Parts of names of modules beside a language model's blocks.
const BESIDE_TEXT: [&str; 7] = [
    "vision",
    "visual",
    "audio",
    "embeddings",
    "projector",
    "head",
    "qformer",
];

impl Model {
    /// Paths of the modules that are kept whole, with `#` for the index in a list; `None` if they are not known.
    ///
    /// Accelerate fails for FSDP where a class has no module (`set_auto_wrap_policy`), until
    /// `fsdp_transformer_layer_cls_to_wrap` names classes: those of the language model's blocks are taken then.
    pub(crate) fn modules_kept_whole(&self) -> Option<HashSet<&'static str>> {
        let mut rows = TABLE.lines().map(|line| line.split('\t').collect::<Vec<&str>>());
        let row = rows.find(|row| row.first() == Some(&&*self.model_type))?;
        let is_complete = row.get(2).is_none_or(|missing| missing.is_empty());
        let of_text = |path: &&str| is_complete || !BESIDE_TEXT.iter().any(|part| path.contains(part));
        let paths = row.get(1)?.split(',');
        Some(paths.filter(|path| !path.is_empty()).filter(of_text).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_towers_and_decoders_are_kept_whole() {
        let kept = |name| Model::from_catalogue(name).unwrap().modules_kept_whole().unwrap();
        assert!(kept("llama3.2-1b").contains("model.layers.#"));
        let vision = kept("qwen2.5-vl-3b");
        assert!(vision.contains("model.visual.blocks.#") && vision.contains("model.language_model.layers.#"));
        // Its classes name one of CLIP's text model, which it has not.
        assert_eq!(kept("tinyllava-1.5b"), HashSet::from(["model.language_model.layers.#"]));
        // Of SmolVLM's tower the attention alone is.
        assert!(
            !kept("smolvlm-256m")
                .iter()
                .any(|path| path.ends_with("vision_model.encoder.layers.#"))
        );
    }
}
