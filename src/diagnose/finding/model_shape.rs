//! Heads and vocabulary of the model that a text names, to hold the size of a request against them. Shapes of models that
//! nobody named are never tried: something always fits.

use serde_json::Value;
use vramscope_engine::Model;
use vramscope_engine::allocator::{LARGE_ROUNDING, LARGE_SEGMENT, segment_size};
use vramscope_engine::units::Bytes;

use crate::Amount;

/// What decides the size of attention matrices and logits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelShape {
    /// Catalogue's name.
    pub name: String,
    /// Heads of the vision tower.
    pub vision_heads: Option<u64>,
    /// Heads of the language model.
    pub heads: Option<u64>,
    /// Entries of the vocabulary.
    pub vocab: Option<u64>,
    /// Width of the language model.
    pub hidden: Option<u64>,
}

impl ModelShape {
    /// The model of a hub's id, a catalogue's name, or a folder with such a name.
    pub fn named(name: &str) -> Option<Self> {
        let found = catalogue_name(name)?;
        let config: Value = serde_json::from_str(Model::catalogue_config(found).ok()?).ok()?;
        let text = config
            .get("text_config")
            .or_else(|| config.get("llm_config"))
            .unwrap_or(&config);
        let number = |of: &Value, keys: &[&str]| keys.iter().find_map(|key| of.get(*key)?.as_u64());
        let vision = config.get("vision_config");
        Some(Self {
            name: found.to_owned(),
            vision_heads: vision.and_then(|vision| number(vision, &["num_heads", "num_attention_heads"])),
            heads: number(text, &["num_attention_heads", "n_head"]),
            hidden: number(text, &["hidden_size", "n_embd"]),
            vocab: number(text, &["vocab_size"]).or_else(|| number(&config, &["vocab_size"])),
        })
    }

    /// What a request is in these shapes, as values of phrases.
    pub fn values(&self, request: Amount) -> Vec<(&'static str, String)> {
        let mut values = Vec::new();
        let Some((least, most)) = tensor_bytes(request) else {
            return values;
        };
        let size = |bytes: u64| Bytes::new(bytes).to_string();
        // Patches of a picture come in squares of two by two.
        if let Some((heads, positions)) = self
            .vision_heads
            .and_then(|heads| Some((heads, square(least, most, heads * 2, 4)?)))
        {
            values.push(("vision_heads", heads.to_string()));
            values.push(("vision_positions", positions.to_string()));
            values.push(("vision_bytes", size(heads * positions * positions * 2)));
        }
        if let Some(vocab) = self.vocab {
            let positions = (least / (vocab * 4)).max(1)..=most / (vocab * 4);
            // Rounding leaves a range of lengths: a round one is the likeliest.
            let fitting = positions.filter(|positions| fits(positions * vocab * 4, least, most));
            if let Some(positions) = fitting.max_by_key(|positions| positions.trailing_zeros()) {
                values.push(("vocab", vocab.to_string()));
                values.push(("logits_positions", positions.to_string()));
            }
        }
        if let (Some(vocab), Some(hidden)) = (self.vocab, self.hidden)
            && let Some(width) = [2, 4]
                .into_iter()
                .find(|width| fits(vocab * hidden * width, least, most))
        {
            values.push(("head_rows", vocab.to_string()));
            values.push(("head_width", hidden.to_string()));
            values.push(("head_bytes", size(vocab * hidden * width)));
        }
        values
    }

    /// Attention matrices of the language model, each as samples, heads and positions, whose size is between two.
    pub fn attention(&self, least: u64, most: u64) -> Vec<(u64, u64, u64)> {
        let Some(heads) = self.heads else { return Vec::new() };
        let of_batch = |batch: u64| {
            let widths = [2, 4].into_iter();
            widths.filter_map(move |width| Some((batch, square(least, most, batch * heads * width, 64)?, width)))
        };
        [1, 2, 4, 8].into_iter().flat_map(of_batch).collect()
    }
}

/// Name under which the catalogue has a model: as it is given, or the end of its path.
pub fn catalogue_name(name: &str) -> Option<&'static str> {
    let name = name.trim_end_matches('/');
    let base = name.rsplit('/').next()?;
    // Folders of a hub's cache are called `models--Qwen--Qwen2-VL-7B-Instruct`.
    let base = base.rsplit("--").next()?;
    let all = Model::catalogue();
    let is_named = |known: &&&'static str| known.eq_ignore_ascii_case(name);
    let is_at_end = |known: &&&'static str| {
        known
            .rsplit('/')
            .next()
            .is_some_and(|end| end.eq_ignore_ascii_case(base))
    };
    all.iter()
        .find(is_named)
        .or_else(|| all.iter().find(is_at_end))
        .copied()
}

/// Smallest and largest tensor, in bytes, that makes the allocator ask the driver for `request`. `None` for requests of
/// 20 MiB and less: such segments are shared by small tensors, so their size says nothing about a tensor.
pub fn tensor_bytes(request: Amount) -> Option<(u64, u64)> {
    if request.bytes.get() <= LARGE_SEGMENT {
        return None;
    }
    let least = request.least().get().saturating_sub(LARGE_ROUNDING) + 1;
    Some((least, request.most().get()))
}

/// Returns true if a tensor of `bytes` leads to a segment between the two sizes.
pub fn fits(bytes: u64, least: u64, most: u64) -> bool {
    (least + LARGE_ROUNDING - 1..=most).contains(&segment_size(bytes))
}

/// A multiple of `multiple` whose square times `unit` is between two sizes: the one nearest to their middle.
fn square(least: u64, most: u64, unit: u64, multiple: u64) -> Option<u64> {
    let middle = ((least / 2 + most / 2) / unit.max(1)).isqrt();
    let below = middle / multiple * multiple;
    let near = [below, below + multiple, below.saturating_sub(multiple)];
    near.into_iter()
        .filter(|n| *n > 0 && fits(unit * n * n, least, most))
        .min_by_key(|n| n.abs_diff(middle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_s_name_names_the_model() {
        for name in [
            "Qwen/Qwen2-VL-7B-Instruct",
            "/data/ckpt/Qwen2-VL-7B-Instruct/",
            "models--Qwen--Qwen2-VL-7B-Instruct",
        ] {
            assert_eq!(catalogue_name(name), Some("Qwen/Qwen2-VL-7B-Instruct"), "{name}");
        }
        assert_eq!(catalogue_name("/data/my-model"), None);
    }

    #[test]
    fn a_request_is_told_in_shapes_of_the_model() {
        let shape = ModelShape::named("qwen2-vl-7b").expect("known");
        assert_eq!(
            (shape.vision_heads, shape.heads, shape.vocab),
            (Some(16), Some(28), Some(152_064))
        );
        let request = Amount {
            bytes: Bytes::new((4.57 * f64::from(1 << 30)) as u64),
            error: Bytes::mib(5),
        };
        let values = shape.values(request);
        // 16 heads × 12380² to 12388² × 2 bytes are 4.57 GiB.
        let positions = values
            .iter()
            .find(|(name, _)| *name == "vision_positions")
            .map(|(_, value)| value.as_str());
        assert!(matches!(positions, Some("12380" | "12384" | "12388")), "{values:?}");
    }
}
