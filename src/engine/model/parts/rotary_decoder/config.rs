//! Form and sizes of the decoders.

use super::forward::RotaryDecoder;
use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, Rope, RopeKind, limits};
use crate::model::forward::Forward;
use crate::model::parts::text::{HeadForm, MlpForm, TextLm};
use crate::nn::Builder;

/// Form of a family's decoder: names of its modules, and what they do.
///
/// Sources: `modeling_*.py` of each family in `transformers/models/`.
#[derive(Debug, PartialEq)]
pub(crate) struct Form {
    /// Name of the decoder within the model.
    pub path: &'static str,
    /// Name of the token embedding.
    pub embedding: &'static str,
    /// Name of the last norm.
    pub final_norm: &'static str,
    /// Name of attention.
    pub attention: &'static str,
    /// Name of its output projection.
    pub output: &'static str,
    /// Projections of queries, keys and values.
    pub qkv: QkvForm,
    /// Norms of queries and keys, if the configuration has them.
    pub query_norms: QueryNorms,
    /// True if the rotated parts of heads live until attention returns.
    pub keeps_rotated: bool,
    /// Form of the MLP.
    pub mlp: FeedForwardForm,
    /// True if a block's norms are made before its parts.
    pub norms_first: bool,
    /// Residual connections.
    pub residual: Residual,
}

/// Projections of queries, keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QkvForm {
    /// One each.
    Separate,
    /// One, which is cut into three parts of each head.
    Chunked,
    /// One, from whose heads the three are selected.
    Selected,
}

/// Norms of queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryNorms {
    /// One for each head, without a bias.
    EachHead,
    /// One for all heads.
    Shared,
}

/// Form of the MLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeedForwardForm {
    /// Llama's.
    Gated,
    /// Without a gate.
    Plain(MlpForm),
}

/// Residual connections of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Residual {
    /// Each part has a norm; side by side, what both add is summed first. Dropout follows both (GPT-NeoX).
    PartsFirst,
    /// Side by side, both parts share a norm, and each is added to the stream. What attention adds lives until the
    /// block returns (StableLM).
    StreamFirst,
    /// Always one after the other (Persimmon).
    InTurn,
}

/// A decoder with layer norms whose heads are partly rotated.
#[derive(Debug, Clone, PartialEq)]
pub struct RotaryDecoderConfig {
    /// Form of the family.
    pub(crate) form: &'static Form,
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Blocks.
    pub layers: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Longest sequence that the model was made for.
    pub max_positions: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Rotary embedding.
    pub rope: Rope,
    /// True if projections of queries, keys and values have biases.
    pub qkv_bias: bool,
    /// True if the output projection of attention has a bias.
    pub output_bias: bool,
    /// True if queries and keys pass norms.
    pub qk_norm: bool,
    /// True if attention and the MLP run side by side.
    pub parallel: bool,
    /// Dropout of hidden states.
    pub hidden_dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl RotaryDecoderConfig {
    /// Elements of one attention head.
    pub fn head_dim(&self) -> u64 {
        self.hidden / self.heads
    }

    pub(crate) fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let head = HeadForm::plain(self.tie_word_embeddings);
        Box::new(TextLm::new(b, self.form.path, head, || RotaryDecoder::new(b, self)))
    }
}

/// Reads the width and the query heads, which fill it, with these defaults; and the elements of a head.
pub(crate) fn read_heads(s: &Section, width: u64, heads: u64) -> Result<[u64; 3], ModelError> {
    let hidden = s.size("hidden_size", width, limits::WIDTH)?;
    let heads = s.size("num_attention_heads", heads, limits::HEADS)?;
    let head_dim = s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
    if let Some(given) = s.optional_size("head_dim", limits::HEAD_DIM)? {
        s.equal(("head_dim", given), ("hidden_size ÷ num_attention_heads", head_dim))?;
    }
    Ok([hidden, heads, head_dim])
}

/// Reads the rotary embedding of heads of `head_dim`, of which a share `partial` is rotated unless the file says
/// otherwise.
pub(crate) fn read_rope(s: &Section, head_dim: u64, partial: f64) -> Result<Rope, ModelError> {
    let rope = Rope::read(s, 10_000.0, partial)?;
    let rotated = rope.rotated(head_dim);
    if rotated == 0 || !rotated.is_multiple_of(2) || rotated > head_dim {
        let share = rope.partial_rotary_factor.into();
        let allowed = format!("a share of its heads' {head_dim} elements that is an even number of them");
        return Err(s.wrong("partial_rotary_factor", &share, &allowed));
    }
    if matches!(rope.kind, RopeKind::LongRope | RopeKind::Other) {
        let allowed = "a rotary embedding of type default, linear, dynamic, yarn or llama3: others are not simulated";
        return Err(s.wrong("rope_parameters", &"another type".into(), allowed));
    }
    Ok(rope)
}
