//! Configuration of Zamba 2.

use serde_json::Value;

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, Rope, limits};
use crate::model::parts::mamba2::{ConvSizes, Gating, Mamba2Config, Mamba2Sizes};

/// Zamba 2: Mamba 2 in all layers, and before that of some a transformer block of which there are few, in turn.
///
/// Source: `transformers/models/zamba2/configuration_zamba2.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Zamba2Config {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the transformer blocks' MLPs.
    pub intermediate: u64,
    /// Attention heads.
    pub heads: u64,
    /// Heads of keys and values.
    pub kv_heads: u64,
    /// Positions that the model was trained for.
    pub max_positions: u64,
    /// For each layer, true if a transformer block comes before its mixer.
    pub is_hybrid: Vec<bool>,
    /// Transformer blocks, which the hybrid layers use in turn.
    pub blocks: u64,
    /// Width of what adapts a block to each of its layers.
    pub rank: u64,
    /// True if queries, keys and values are adapted too.
    pub adapts_attention: bool,
    /// True if linear layers of MLPs and mixers have biases.
    pub bias: bool,
    /// Activation of MLPs.
    pub activation: Activation,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Rotary positions, if they rotate queries and keys.
    pub rope: Option<Rope>,
    /// The mixers.
    pub mamba: Mamba2Config,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

/// Layers of the class's own list that have a transformer block.
const HYBRID: [u64; 9] = [6, 12, 18, 24, 30, 36, 42, 47, 51];

/// Layers of the class's own list.
const LAYERS: u64 = 54;

impl Zamba2Config {
    pub(super) fn read(s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size("hidden_size", 2560, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 32, limits::HEADS)?;
        s.divide(("hidden_size × 2", 2 * hidden), ("num_attention_heads", heads))?;
        let kv_heads = s.optional_size("num_key_value_heads", limits::HEADS)?.unwrap_or(heads);
        s.divide(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
        let adapts_attention = s.flag("use_shared_attention_adapter", false)?;
        if adapts_attention {
            s.equal(("num_key_value_heads", kv_heads), ("num_attention_heads", heads))?;
        }
        let vocab = s.size("vocab_size", 32_000, limits::VOCAB)?;
        s.padding(vocab)?;
        let bias = s.flag("add_bias_linear", false)?;
        let has_rope = s.flag("use_mem_rope", false)?;
        Ok(Self {
            vocab,
            hidden,
            intermediate: s
                .optional_size("intermediate_size", limits::WIDTH * 4)?
                .unwrap_or(4 * hidden),
            heads,
            kv_heads,
            max_positions: s.size_or("max_position_embeddings", 4096, limits::POSITIONS)?,
            is_hybrid: layers(s)?,
            blocks: s.size_or("num_mem_blocks", 1, limits::LAYERS)?,
            rank: s.size_or("adapter_rank", 128, limits::WIDTH)?,
            adapts_attention,
            bias,
            activation: s.activation("hidden_act", Activation::Gelu)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            rope: if has_rope { Some(Rope::read(s, 1e4, 1.0)?) } else { None },
            mamba: mixer(s, hidden, bias)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }

    /// Elements of an attention head.
    pub(super) const fn head_dim(&self) -> u64 {
        2 * self.hidden / self.heads
    }
}

/// Reads the mixers.
fn mixer(s: &Section, hidden: u64, bias: bool) -> Result<Mamba2Config, ModelError> {
    let inner = s.size_or("mamba_expand", 2, limits::COUNT)? * hidden;
    let heads = s.size_or("n_mamba_heads", 8, limits::HEADS)?;
    let head_dim = s.divide(("mamba_expand × hidden_size", inner), ("n_mamba_heads", heads))?;
    let groups = s.size_or("mamba_ngroups", 1, limits::HEADS)?;
    s.divide(("n_mamba_heads", heads), ("mamba_ngroups", groups))?;
    Ok(Mamba2Config {
        hidden,
        sizes: Mamba2Sizes {
            heads,
            head_dim,
            groups,
            state: s.size_or("mamba_d_state", 64, limits::WIDTH)?,
            chunk: s.size_or("chunk_size", 256, limits::COUNT)?,
        },
        // The class has a bias whatever `use_conv_bias` says.
        conv: ConvSizes {
            kernel: s.size_or("mamba_d_conv", 4, limits::COUNT)?,
            bias: true,
            activation: Activation::Silu,
        },
        in_bias: bias,
        out_bias: bias,
        gating: Gating::BeforeNormOf(groups),
        has_multipliers: false,
    })
}

/// Reads which layers have a transformer block.
fn layers(s: &Section) -> Result<Vec<bool>, ModelError> {
    let count = s.size("num_hidden_layers", LAYERS, limits::LAYERS)?;
    let Some(types) = s.value("layers_block_type").or(s.value("layer_types")) else {
        if count != LAYERS {
            let allowed = format!("{LAYERS}, unless `layers_block_type` names the layers");
            return Err(s.wrong("num_hidden_layers", &count.into(), &allowed));
        }
        return Ok((0..LAYERS).map(|layer| HYBRID.contains(&layer)).collect());
    };
    let allowed = format!("{count} entries, each \"mamba\", \"linear_attention\" or \"hybrid\", some of them hybrid");
    let wrong = || s.wrong("layers_block_type", types, &allowed);
    let list = types
        .as_array()
        .filter(|list| list.len() as u64 == count)
        .ok_or_else(wrong)?;
    let is_hybrid = |kind: &Value| match kind.as_str() {
        Some("hybrid") => Ok(true),
        Some("mamba" | "linear_attention") => Ok(false),
        _ => Err(wrong()),
    };
    let read: Vec<bool> = list.iter().map(is_hybrid).collect::<Result<_, _>>()?;
    if read.contains(&true) { Ok(read) } else { Err(wrong()) }
}
