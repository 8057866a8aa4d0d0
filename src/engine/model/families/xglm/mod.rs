//! XGLM (`transformers/models/xglm`).

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::bart::{BartConfig, BartForm};
use crate::model::parts::text::{TextFamily, TextSupport};
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

static FORM: BartForm = BartForm {
    path: "model",
    head: "lm_head",
    is_xglm: true,
};

/// XGLM: positions of sines and cosines, layer norms before each part, a scaled embedding. Its attention is eager:
/// transformers has no SDPA for it, and takes eager attention unless told otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct XglmConfig(pub BartConfig);

impl TextFamily for XglmConfig {
    fn facts() -> &'static Facts {
        &FACTS
    }

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        BartConfig::supported(s)?;
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
        Ok(Self(BartConfig {
            form: &FORM,
            vocab,
            hidden,
            intermediate: s.size("ffn_dim", 4096, limits::WIDTH * 4)?,
            layers: s.size_of_either(["num_layers", "num_hidden_layers"], 24, limits::LAYERS)?,
            heads,
            positions: s.size("max_position_embeddings", 2048, limits::POSITIONS)?,
            activation: s.activation("activation_function", Activation::Gelu)?,
            dropout: s.probability("dropout", 0.1)?,
            attention_dropout: s.probability("attention_dropout", 0.1)?,
            activation_dropout: s.probability("activation_dropout", 0.0)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        }))
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        self.0.build(b)
    }

    fn positions(&self) -> Positions {
        Positions::Learned(self.0.positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.0.heads, self.0.hidden)
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
