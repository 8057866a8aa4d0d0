//! Falcon (`transformers/models/falcon`).

mod attention;
mod stack;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::config::{Activation, Rope, limits};
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::rotary_decoder::{read_heads, read_rope};
use crate::model::parts::text::{HeadForm, TextFamily, TextLm, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[ModelType::new("falcon", &["FalconForCausalLM"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// Keys and values of a block's attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHeads {
    /// One head of each for every query head.
    Own,
    /// One head of each for all query heads (`multi_query`).
    One,
    /// One head of each for a group of query heads, copied for each (`new_decoder_architecture`), and the groups.
    Groups(u64),
}

/// Norms of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norms {
    /// One before attention and one before the MLP, which run one after the other.
    InTurn,
    /// One before both, which run side by side.
    Shared,
    /// One before each, which run side by side.
    Each,
}

/// Falcon: attention and MLP side by side, rotary positions or ALiBi.
#[derive(Debug, Clone, PartialEq)]
pub struct FalconConfig {
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
    /// Heads of keys and values.
    pub key_heads: KeyHeads,
    /// Longest sequence that the model was made for.
    pub max_positions: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Norms.
    pub norms: Norms,
    /// True if linear layers have biases.
    pub bias: bool,
    /// True for ALiBi in place of rotary positions.
    pub alibi: bool,
    /// Rotary embedding, which is made even beside ALiBi.
    pub rope: Rope,
    /// Dropout after the MLP.
    pub hidden_dropout: f64,
    /// Dropout of attention probabilities, and after attention.
    pub attention_dropout: f64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl FalconConfig {
    /// Elements of one attention head.
    pub fn head_dim(&self) -> u64 {
        self.hidden / self.heads
    }
}

/// Reads the heads of keys and values beside `heads` query heads.
fn key_heads(s: &Section, is_new: bool, heads: u64) -> Result<KeyHeads, ModelError> {
    let given = s.size_or("num_kv_heads", heads, limits::HEADS)?;
    if is_new {
        s.divide(("num_attention_heads", heads), ("num_kv_heads", given))?;
        return Ok(KeyHeads::Groups(given));
    }
    if s.flag("multi_query", true)? {
        return Ok(KeyHeads::One);
    }
    s.equal(("num_kv_heads", given), ("num_attention_heads", heads))?;
    Ok(KeyHeads::Own)
}

/// Reads the norms of a block, as far as its forward finds them.
fn norms(s: &Section, is_new: bool) -> Result<Norms, ModelError> {
    let parallel = s.flag("parallel_attn", true)?;
    let count = s.optional_count("num_ln_in_parallel_attn", limits::COUNT)?;
    if !is_new && !parallel {
        return Ok(Norms::InTurn);
    }
    if !parallel {
        let allowed = "true beside `new_decoder_architecture`: transformers 5.17 fails without it";
        return Err(s.wrong("parallel_attn", &false.into(), allowed));
    }
    match (is_new, count) {
        (true, None | Some(2)) => Ok(Norms::Each),
        (true, Some(1)) => Ok(Norms::Shared),
        (false, count) if count != Some(2) => Ok(Norms::Shared),
        (_, count) => {
            let allowed = "as many norms as its forward runs: 1 or 2 beside `new_decoder_architecture`, else not 2";
            Err(s.wrong("num_ln_in_parallel_attn", &count.into(), allowed))
        }
    }
}

impl TextFamily for FalconConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        s.only("n_embed", "its width under `hidden_size`", |_| false)?;
        let [hidden, heads, head_dim] = read_heads(s, 4544, 71)?;
        let is_new = s.flag("new_decoder_architecture", false)?;
        Ok(Self {
            vocab: s.size("vocab_size", 65_024, limits::VOCAB)?,
            hidden,
            intermediate: s.size_or("ffn_hidden_size", 4 * hidden, limits::WIDTH * 4)?,
            layers: s.size("num_hidden_layers", 32, limits::LAYERS)?,
            heads,
            key_heads: key_heads(s, is_new, heads)?,
            max_positions: s.size_or("max_position_embeddings", 2048, limits::POSITIONS)?,
            activation: s.activation("activation", Activation::Gelu)?,
            norms: norms(s, is_new)?,
            bias: s.flag("bias", false)?,
            alibi: s.flag("alibi", false)?,
            rope: read_rope(s, head_dim, 1.0)?,
            hidden_dropout: s.probability("hidden_dropout", 0.0)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let head = HeadForm::plain(self.tie_word_embeddings);
        Box::new(TextLm::new(b, "transformer", head, || stack::FalconStack::new(b, self)))
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads {
            query: self.heads,
            key_value: match self.key_heads {
                KeyHeads::Own => self.heads,
                KeyHeads::One => 1,
                KeyHeads::Groups(groups) => groups,
            },
            width: self.head_dim(),
        }
    }

    fn libraries(&self) -> TextSupport {
        TextSupport {
            adapters: AdapterMaps::OtherNames,
            liger: Liger::Unknown,
            no_flash: Some(NoFlash::NotSimulated),
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
