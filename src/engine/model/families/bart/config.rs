//! Configuration of the decoders of encoder-decoder models.

use super::forms::{EmbeddingNorm, FORMS, Form, PositionTable};
use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::parts::bart::BlockConfig;

/// BART's decoder alone, and those like it. The modules of cross attention are there, and nothing runs them.
///
/// Source: `configuration_*.py` of each family in `transformers/models/`.
#[derive(Debug, Clone, PartialEq)]
pub struct BartConfig {
    /// Form of the decoder, which the model type decides.
    pub form: &'static Form,
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Blocks.
    pub layers: u64,
    /// Longest sequence.
    pub max_positions: u64,
    /// True if embeddings pass a norm, in a family that has one.
    pub norms_embeddings: bool,
    /// Form and sizes of a block.
    pub(crate) block: BlockConfig,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl BartConfig {
    /// Entries of the table of positions.
    pub fn position_entries(&self) -> u64 {
        match self.form.positions {
            PositionTable::Shifted | PositionTable::ShiftedEach => self.max_positions + 2,
            PositionTable::Plain | PositionTable::Frozen | PositionTable::Indexed => self.max_positions,
        }
    }

    pub(crate) fn read(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        let Some(form) = FORMS.iter().find(|form| form.model_type == model_type) else {
            unreachable!("the registry asks for one of these types")
        };
        let d = &form.defaults;
        let hidden = s.size("d_model", d.hidden, limits::WIDTH)?;
        let heads = s.size("decoder_attention_heads", d.heads, limits::HEADS)?;
        s.divide(("d_model", hidden), ("decoder_attention_heads", heads))?;
        let vocab = s.size("vocab_size", d.vocab, limits::VOCAB)?;
        s.padding(vocab)?;
        let layers = s.size("decoder_layers", d.layers, limits::LAYERS)?;
        check(s, form, [vocab, hidden, heads, layers])?;
        Ok(Self {
            form,
            vocab,
            layers,
            max_positions: s.size(d.positions_key, d.max_positions, limits::POSITIONS)?,
            norms_embeddings: form.embedding_norm != EmbeddingNorm::None
                && (model_type != "trocr" || s.flag("layernorm_embedding", true)?),
            block: BlockConfig {
                hidden,
                intermediate: s.size("decoder_ffn_dim", d.intermediate, limits::WIDTH * 4)?,
                heads,
                attention: form.attention,
                bias: match form.bias_key {
                    Some(key) => s.flag(key, false)?,
                    None => true,
                },
                norm_before: form.norm_before,
                has_cross_attention: true,
                nests_activation: true,
                activation: s.activation("activation_function", d.activation)?,
                dropout: s.probability("dropout", d.dropout)?,
                attention_dropout: s.probability("attention_dropout", d.attention_dropout)?,
                activation_dropout: s.probability("activation_dropout", 0.0)?,
            },
            tie_word_embeddings: s.flag("tie_word_embeddings", true)? && form.ties,
        })
    }
}

/// Refuses what is not simulated.
fn check(s: &Section, form: &Form, [vocab, hidden, heads, layers]: [u64; 4]) -> Result<(), ModelError> {
    let same = |key: &str, as_key: &str, value: u64| {
        let allowed = format!("absent, or the same as {as_key}: another value is not simulated");
        s.only(key, &allowed, |given| given.as_u64() == Some(value))
    };
    s.only(
        "decoder_layerdrop",
        "0: blocks that chance drops are not simulated",
        |p| p.as_f64() == Some(0.0),
    )?;
    // Other names under which the configuration class keeps a value (`attribute_map`).
    same("hidden_size", "d_model", hidden)?;
    let padding = form.defaults.padding;
    if !s.has("pad_token_id") && vocab <= padding {
        let allowed = format!("a token of its vocabulary: {padding} stands for it if it is absent");
        s.required("pad_token_id", &allowed)?;
    }
    match form.model_type {
        "marian" => same("decoder_vocab_size", "vocab_size", vocab),
        "bigbird_pegasus" => s.only(
            "attention_probs_dropout_prob",
            "absent: write attention_dropout",
            |_| false,
        ),
        "trocr" => {
            let learned = "true: sinusoids in their place are not simulated";
            s.only("use_learned_position_embeddings", learned, |v| {
                v.as_bool() == Some(true)
            })?;
            same("num_attention_heads", "decoder_attention_heads", heads)?;
            same("num_hidden_layers", "decoder_layers", layers)?;
            same("cross_attention_hidden_size", "d_model", hidden)
        }
        _ => Ok(()),
    }
}
