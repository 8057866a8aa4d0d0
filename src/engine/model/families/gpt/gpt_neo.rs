//! GPT-Neo (`transformers/models/gpt_neo`).

use serde_json::Value;

use super::config::{AttentionForm, Dropouts, GptConfig};
use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};

/// Reads `attention_types`, such as `[[["global", "local"], 12]]`: for each block, true if it sees only a window.
fn local_blocks(s: &Section, layers: u64) -> Result<Vec<bool>, ModelError> {
    let key = "attention_types";
    let Some(given) = s.value(key) else {
        s.equal(("num_layers", layers), ("length of the default `attention_types`", 24))?;
        return Ok([false, true].repeat(12));
    };
    let allowed = "a list such as [[[\"global\", \"local\"], 12]] of `num_layers` kinds in all";
    let wrong = || s.wrong(key, given, allowed);
    let mut blocks = Vec::new();
    for item in given.as_array().ok_or_else(wrong)? {
        let kinds = item.get(0).and_then(Value::as_array).ok_or_else(wrong)?;
        let times = item.get(1).and_then(Value::as_u64).ok_or_else(wrong)?;
        let kinds: Option<Vec<bool>> = kinds
            .iter()
            .map(|kind| match kind.as_str() {
                Some("global") => Some(false),
                Some("local") => Some(true),
                _ => None,
            })
            .collect();
        let kinds = kinds.ok_or_else(wrong)?;
        if times.saturating_mul(kinds.len() as u64) > layers {
            return Err(wrong());
        }
        blocks.extend(kinds.repeat(times as usize));
    }
    if blocks.len() as u64 == layers {
        Ok(blocks)
    } else {
        Err(wrong())
    }
}

/// Reads GPT-Neo: GPT-2 with linear layers in place of `Conv1D`, some of whose blocks see only a window.
pub(super) fn read(s: &Section) -> Result<GptConfig, ModelError> {
    let hidden = s.size("hidden_size", 2048, limits::WIDTH)?;
    let heads = s.size_of_either(["num_heads", "num_attention_heads"], 16, limits::HEADS)?;
    s.divide(("hidden_size", hidden), ("num_heads", heads))?;
    let layers = s.size_of_either(["num_layers", "num_hidden_layers"], 24, limits::LAYERS)?;
    Ok(GptConfig {
        attention: AttentionForm::Tables {
            local: local_blocks(s, layers)?,
        },
        vocab: s.size("vocab_size", 50_257, limits::VOCAB)?,
        positions: s.size_or("max_position_embeddings", 2048, limits::POSITIONS)?,
        hidden,
        intermediate: s.size_or("intermediate_size", 4 * hidden, limits::WIDTH * 4)?,
        layers,
        heads,
        activation: s.activation("activation_function", Activation::GeluNew)?,
        dropouts: Dropouts {
            embedding: s.probability("embed_dropout", 0.0)?,
            attention: s.probability("attention_dropout", 0.0)?,
            residual: s.probability("resid_dropout", 0.0)?,
        },
        tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
    })
}
