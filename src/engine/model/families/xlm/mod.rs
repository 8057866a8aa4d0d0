//! XLM (`transformers/models/xlm`).

mod stack;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::text::{TextFamily, TextLm, TextSupport};
use crate::nn::Builder;
use crate::tape::{Component, Tape, Tensor};

static FACTS: Facts = Facts {
    model_types: &[ModelType::new("xlm", &["XLMWithLMHeadModel"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// XLM: layer norms after each part, learned positions, eager attention over all tokens or those before, and a loss of each
/// token itself.
#[derive(Debug, Clone, PartialEq)]
pub struct XlmConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Longest sequence.
    pub positions: u64,
    /// Languages with embeddings, which no input names here; 0 without any.
    pub languages: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Dropout of the embeddings and after each part.
    pub dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// True if the MLP's activation is GELU, false if it is ReLU.
    pub gelu: bool,
    /// True if tokens see only those before.
    pub causal: bool,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl TextFamily for XlmConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size_of_either(["emb_dim", "hidden_size"], 2048, limits::WIDTH)?;
        let heads = s.size_of_either(["n_heads", "num_attention_heads"], 16, limits::HEADS)?;
        s.divide(("emb_dim", hidden), ("n_heads", heads))?;
        let vocab = s.size_of_either(["vocab_size", "n_words"], 30_145, limits::VOCAB)?;
        s.padding(vocab)?;
        s.only("asm", "false: an adaptive softmax is not simulated", |v| v == false)?;
        s.only("is_encoder", "true: transformers has no decoder of it", |v| v == true)?;
        s.only("chunk_size_feed_forward", "0: an MLP in chunks is not simulated", |v| {
            v == 0
        })?;
        let languages = s.size_or("n_langs", 1, limits::VOCAB)?;
        let has_languages = languages > 1 && s.flag("use_lang_emb", true)?;
        Ok(Self {
            vocab,
            positions: s.size_or("max_position_embeddings", 512, limits::POSITIONS)?,
            languages: if has_languages { languages } else { 0 },
            hidden,
            layers: s.size_of_either(["n_layers", "num_hidden_layers"], 12, limits::LAYERS)?,
            heads,
            dropout: s.probability("dropout", 0.1)?,
            attention_dropout: s.probability("attention_dropout", 0.1)?,
            gelu: s.flag("gelu_activation", true)?,
            causal: s.flag("causal", false)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let path = "transformer";
        let make = || stack::XlmStack::new(b, self);
        let stack = b.tape().component(path, Component::LanguageModel, make);
        let head = stack::PredictionHead::new(b, &stack, self);
        Box::new(TextLm::of(path, stack, Box::new(head)).with_loss(loss_of_each))
    }

    fn positions(&self) -> Positions {
        Positions::Learned(self.positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.heads, self.hidden)
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

    fn checkpoints(&self) -> bool {
        false
    }
}

/// Cross entropy of each token's own label, in the logits' type.
fn loss_of_each(t: &Tape, logits: &Tensor, labels: &Tensor) -> Tensor {
    let rows = t.view(logits, [logits.numel() / logits.last(), logits.last()]);
    t.cross_entropy(&rows, &t.view(labels, [labels.numel()]))
}
