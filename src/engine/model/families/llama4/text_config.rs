//! Configuration of Llama 4's language model.

use serde_json::Value;

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits, rope};

/// Llama 4's decoder: some blocks attend within chunks, some have rotary positions, some have experts.
///
/// Source: `transformers/models/llama4/configuration_llama4.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Llama4TextConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside each expert.
    pub intermediate: u64,
    /// Width inside the MLP of blocks without experts.
    pub dense_intermediate: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Elements of one head.
    pub head_dim: u64,
    /// Longest sequence that the model was made for.
    pub max_positions: u64,
    /// Activation of the gates.
    pub activation: Activation,
    /// True if attention's projections have biases.
    pub bias: bool,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Experts of a block.
    pub experts: u64,
    /// Experts that each token is sent to.
    pub chosen: u64,
    /// Positions of a chunk.
    pub chunk: u64,
    /// Blocks.
    pub blocks: Vec<BlockKind>,
    /// True if queries and keys with rotary positions are normalised.
    pub qk_norm: bool,
    /// True if queries without rotary positions are scaled by their position.
    pub attn_temperature_tuning: bool,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

/// Kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockKind {
    /// True if queries and keys are rotated by their positions.
    pub use_rope: bool,
    /// True if attention stays within chunks.
    pub is_chunked: bool,
    /// True if it has experts.
    pub is_moe_layer: bool,
}

impl Llama4TextConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        s.only(
            "output_router_logits",
            "false: logits that are kept are not simulated",
            |v| v == false,
        )?;
        if s.has("attention_chunk_size") {
            s.required(
                "attention_chunk_size",
                "a number, since the mask of chunks is always made",
            )?;
        }
        rope::read_static(s, 500_000.0)?;
        let hidden = s.size("hidden_size", 5120, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 40, limits::HEADS)?;
        let kv_heads = kv_heads(s, heads)?;
        s.divide(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
        let head_dim = head_dim(s, hidden, heads)?;
        let experts = s.size_or("num_local_experts", 16, limits::COUNT)?;
        let vocab = s.size("vocab_size", 202_048, limits::VOCAB)?;
        s.padding(vocab)?;
        Ok(Self {
            vocab,
            hidden,
            intermediate: s.size("intermediate_size", 8192, limits::WIDTH * 4)?,
            dense_intermediate: s.size_or("intermediate_size_mlp", 16_384, limits::WIDTH * 4)?,
            heads,
            kv_heads,
            head_dim,
            max_positions: s.size_or("max_position_embeddings", 131_072, limits::POSITIONS)?,
            activation: s.activation("hidden_act", Activation::Silu)?,
            bias: s.flag("attention_bias", false)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            experts,
            chosen: s.size_or("num_experts_per_tok", 1, experts)?,
            chunk: s.size_or("attention_chunk_size", 8192, limits::POSITIONS)?,
            blocks: blocks(s)?,
            qk_norm: s.flag("use_qk_norm", true)?,
            attn_temperature_tuning: s.flag("attn_temperature_tuning", true)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", false)?,
        })
    }
}

/// Reads the key and value heads: 8 if absent, as many as query heads if null.
fn kv_heads(s: &Section, heads: u64) -> Result<u64, ModelError> {
    let key = "num_key_value_heads";
    let absent = if s.has(key) { heads } else { 8 };
    s.size_or(key, absent, limits::HEADS)
}

/// Reads the elements of a head, an even number: 128 if absent, a share of the width if null.
fn head_dim(s: &Section, hidden: u64, heads: u64) -> Result<u64, ModelError> {
    let key = "head_dim";
    let head_dim = match s.optional_size(key, limits::HEAD_DIM)? {
        Some(n) => n,
        None if s.has(key) => hidden / heads,
        None => 128,
    };
    match head_dim.is_multiple_of(2) && head_dim > 0 {
        true => Ok(head_dim),
        false => Err(s.wrong(
            key,
            &head_dim.into(),
            "an even number, whose elements are rotated in pairs",
        )),
    }
}

/// Reads which blocks have rotary positions, which attend within chunks, and which have experts.
fn blocks(s: &Section) -> Result<Vec<BlockKind>, ModelError> {
    let layers = s.size("num_hidden_layers", 48, limits::LAYERS)?;
    let interval = s.size_or("no_rope_layer_interval", 4, limits::LAYERS)?;
    let step = s.size_or("interleave_moe_layer_step", 1, limits::LAYERS)?;
    let with_rope = s.optional_indices("no_rope_layers", 1)?.filter(|list| !list.is_empty());
    let sparse = s.optional_indices("moe_layers", limits::LAYERS)?;
    let kinds = s.value("layer_types");
    if let Some(list) = &with_rope
        && (list.len() as u64) < layers
    {
        let given = s.value("no_rope_layers").cloned().unwrap_or_default();
        return Err(s.wrong("no_rope_layers", &given, &format!("at least {layers} entries")));
    }
    (0..layers)
        .map(|i| {
            let use_rope = with_rope
                .as_ref()
                .map_or((i + 1) % interval != 0, |list| list[i as usize] == 1);
            let is_chunked = match kinds {
                Some(kinds) => is_chunked(s, kinds, [i, layers])?,
                None => use_rope,
            };
            let is_moe_layer = sparse.as_ref().map_or((i + 1) % step == 0, |list| list.contains(&i));
            Ok(BlockKind {
                use_rope,
                is_chunked,
                is_moe_layer,
            })
        })
        .collect()
}

/// Returns true if `layer_types` says of a block that its attention stays within chunks.
fn is_chunked(s: &Section, kinds: &Value, [index, layers]: [u64; 2]) -> Result<bool, ModelError> {
    let list = kinds.as_array().filter(|list| list.len() as u64 == layers);
    match list.and_then(|list| list[index as usize].as_str()) {
        Some("chunked_attention") => Ok(true),
        Some("full_attention") => Ok(false),
        _ => {
            let allowed = format!("{layers} entries, each \"chunked_attention\" or \"full_attention\"");
            Err(s.wrong("layer_types", kinds, &allowed))
        }
    }
}
