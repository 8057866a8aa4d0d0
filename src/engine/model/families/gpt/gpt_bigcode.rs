//! GPTBigCode (`transformers/models/gpt_bigcode`), such as SantaCoder and StarCoder.

use super::config::{AttentionForm, Dropouts, GptConfig};
use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};

/// Reads GPTBigCode: GPT-2 with linear layers, and one head of keys and values for all query heads.
pub(super) fn read(s: &Section) -> Result<GptConfig, ModelError> {
    let hidden = s.size_of_either(["n_embd", "hidden_size"], 768, limits::WIDTH)?;
    let heads = s.size_of_either(["n_head", "num_attention_heads"], 12, limits::HEADS)?;
    s.divide(("n_embd", hidden), ("n_head", heads))?;
    s.only(
        "add_cross_attention",
        "false: attention to an encoder is not simulated",
        |v| v == false,
    )?;
    let keys = ["n_positions", "max_position_embeddings"];
    Ok(GptConfig {
        attention: AttentionForm::Fused {
            multi_query: s.flag("multi_query", true)?,
        },
        vocab: s.size("vocab_size", 50_257, limits::VOCAB)?,
        positions: s.with_defaults().size_of_either(keys, 1024, limits::POSITIONS)?,
        hidden,
        intermediate: s.size_or("n_inner", 4 * hidden, limits::WIDTH * 4)?,
        layers: s.size_of_either(["n_layer", "num_hidden_layers"], 12, limits::LAYERS)?,
        heads,
        activation: s.activation("activation_function", Activation::GeluTanh)?,
        dropouts: Dropouts {
            embedding: s.probability("embd_pdrop", 0.1)?,
            attention: s.probability("attn_pdrop", 0.1)?,
            residual: s.probability("resid_pdrop", 0.1)?,
        },
        tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
    })
}
