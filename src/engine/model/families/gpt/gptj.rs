//! GPT-J (`transformers/models/gptj`) and CodeGen (`transformers/models/codegen`).

use super::config::{AttentionForm, Dropouts, GptConfig};
use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};

/// Reads GPT-J and CodeGen: attention and MLP in parallel after one layer norm, heads rotated in pairs of elements.
pub(super) fn read(model_type: &str, s: &Section) -> Result<GptConfig, ModelError> {
    let fused = model_type == "codegen";
    let hidden = s.size_of_either(["n_embd", "hidden_size"], 4096, limits::WIDTH)?;
    let heads = s.size_of_either(["n_head", "num_attention_heads"], 16, limits::HEADS)?;
    let head_dim = s.divide(("n_embd", hidden), ("n_head", heads))?;
    if fused {
        s.divide(("n_head", heads), ("parts of the projection", 4))?;
    }
    s.only(
        "rotary_dim",
        "a number of elements: heads without one are not simulated",
        |v| v.is_u64(),
    )?;
    if s.has("rotary_dim") {
        s.required(
            "rotary_dim",
            "a number of elements: heads without one are not simulated",
        )?;
    }
    let rotated = s.size_or("rotary_dim", 64, limits::HEAD_DIM)?;
    if !rotated.is_multiple_of(2) || rotated > head_dim {
        let allowed = format!("an even number of its heads' {head_dim} elements");
        return Err(s.wrong("rotary_dim", &rotated.into(), &allowed));
    }
    let keys = ["n_positions", "max_position_embeddings"];
    Ok(GptConfig {
        attention: AttentionForm::Pairs { rotated, fused },
        vocab: s.size("vocab_size", 50_400, limits::VOCAB)?,
        positions: s.with_defaults().size_of_either(keys, 2048, limits::POSITIONS)?,
        hidden,
        intermediate: s.size_or("n_inner", 4 * hidden, limits::WIDTH * 4)?,
        layers: s.size_of_either(["n_layer", "num_hidden_layers"], 28, limits::LAYERS)?,
        heads,
        activation: s.activation("activation_function", Activation::GeluNew)?,
        dropouts: Dropouts {
            embedding: s.probability("embd_pdrop", 0.0)?,
            attention: s.probability("attn_pdrop", 0.0)?,
            residual: s.probability("resid_pdrop", 0.0)?,
        },
        tie_word_embeddings: s.flag("tie_word_embeddings", false)?,
    })
}
