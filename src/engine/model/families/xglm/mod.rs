//! XGLM (`transformers/models/xglm`).

mod forward;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::bart::{AttentionForm, BlockConfig};
use crate::model::parts::text::{HeadForm, TextFamily, TextLm, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "xglm",
        classes: &["XGLMForCausalLM"],
    }],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// XGLM: positions of sines and cosines, layer norms before each part, a scaled embedding. Its attention is eager:
/// transformers has no SDPA for it, and takes eager attention unless told otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct XglmConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Blocks.
    pub layers: u64,
    /// Longest sequence; the table of positions has two more entries.
    pub positions: u64,
    /// Form and sizes of a block.
    pub(crate) block: BlockConfig,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl TextFamily for XglmConfig {
    fn facts() -> &'static Facts {
        &FACTS
    }

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        s.only("layerdrop", "0: blocks that are left out are not simulated", |p| {
            p.as_f64() == Some(0.0)
        })?;
        s.only(
            "add_cross_attention",
            "false: attention to an encoder is not simulated",
            |v| v == false,
        )?;
        let hidden = s.size_of_either(["d_model", "hidden_size"], 1024, limits::WIDTH)?;
        let heads = s.size_of_either(["attention_heads", "num_attention_heads"], 16, limits::HEADS)?;
        s.divide(("d_model", hidden), ("attention_heads", heads))?;
        if !hidden.is_multiple_of(2) {
            return Err(s.wrong("d_model", &hidden.into(), "an even width"));
        }
        let vocab = s.size("vocab_size", 256_008, limits::VOCAB)?;
        s.padding(vocab)?;
        Ok(Self {
            vocab,
            layers: s.size_of_either(["num_layers", "num_hidden_layers"], 24, limits::LAYERS)?,
            positions: s.size("max_position_embeddings", 2048, limits::POSITIONS)?,
            block: BlockConfig {
                hidden,
                intermediate: s.size("ffn_dim", 4096, limits::WIDTH * 4)?,
                heads,
                attention: AttentionForm::Clamped,
                bias: true,
                norm_before: true,
                has_cross_attention: false,
                nests_activation: true,
                activation: s.activation("activation_function", Activation::Gelu)?,
                dropout: s.probability("dropout", 0.1)?,
                attention_dropout: s.probability("attention_dropout", 0.1)?,
                activation_dropout: s.probability("activation_dropout", 0.0)?,
            },
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let head = HeadForm::plain(self.tie_word_embeddings);
        Box::new(TextLm::new(b, "model", head, || forward::Decoder::new(b, self)))
    }

    fn positions(&self) -> Positions {
        Positions::Learned(self.positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.block.heads, self.block.hidden)
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
