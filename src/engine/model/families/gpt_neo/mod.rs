//! GPT-Neo (`transformers/models/gpt_neo`).

use serde_json::Value;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::gpt::{AttentionForm, Dropouts, GptConfig, GptForm};
use crate::model::parts::text::{MlpForm, TextFamily, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "gpt_neo",
        classes: &["GPTNeoForCausalLM"],
    }],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

static FORM: GptForm = GptForm {
    learns_positions: true,
    mlp: MlpForm {
        names: ["c_fc", "c_proj"],
        bias: true,
    },
    parallel: false,
    head_bias: false,
};

/// GPT-Neo: GPT-2 with linear maps, of whose blocks some see a window. Its attention is eager: transformers has no SDPA
/// for it, and takes eager attention unless told otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct GptNeoConfig(pub GptConfig);

/// Reads `attention_types`, such as `[[["global", "local"], 12]]`: for each block, if it sees a window only.
fn local_blocks(s: &Section, layers: u64) -> Result<Vec<bool>, ModelError> {
    let key = "attention_types";
    let Some(given) = s.value(key) else {
        s.equal(("num_layers", layers), ("length of the default `attention_types`", 24))?;
        return Ok([false, true].repeat(12));
    };
    let allowed = "a list such as [[[\"global\", \"local\"], 12]] of `num_layers` kinds in all";
    let wrong = || s.wrong(key, given, allowed);
    let mut blocks = Vec::new();
    for item in given.as_array().ok_or_else(wrong)? {
        let kinds = item.get(0).and_then(Value::as_array).ok_or_else(wrong)?;
        let times = item.get(1).and_then(Value::as_u64).ok_or_else(wrong)?;
        let kinds: Option<Vec<bool>> = kinds
            .iter()
            .map(|kind| match kind.as_str() {
                Some("global") => Some(false),
                Some("local") => Some(true),
                _ => None,
            })
            .collect();
        let kinds = kinds.ok_or_else(wrong)?;
        if times.saturating_mul(kinds.len() as u64) > layers {
            return Err(wrong());
        }
        blocks.extend(kinds.repeat(times as usize));
    }
    if blocks.len() as u64 == layers {
        Ok(blocks)
    } else {
        Err(wrong())
    }
}

impl TextFamily for GptNeoConfig {
    fn facts() -> &'static Facts {
        &FACTS
    }

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size("hidden_size", 2048, limits::WIDTH)?;
        let heads = s.size_of_either(["num_heads", "num_attention_heads"], 16, limits::HEADS)?;
        s.divide(("hidden_size", hidden), ("num_heads", heads))?;
        let layers = s.size_of_either(["num_layers", "num_hidden_layers"], 24, limits::LAYERS)?;
        Ok(Self(GptConfig {
            form: &FORM,
            attention: AttentionForm::Tables {
                local: local_blocks(s, layers)?,
            },
            vocab: s.size("vocab_size", 50_257, limits::VOCAB)?,
            positions: s.size_or("max_position_embeddings", 2048, limits::POSITIONS)?,
            hidden,
            intermediate: s.size_or("intermediate_size", 4 * hidden, limits::WIDTH * 4)?,
            layers,
            heads,
            activation: s.activation("activation_function", Activation::GeluNew)?,
            dropouts: Dropouts {
                embedding: s.probability("embed_dropout", 0.0)?,
                attention: s.probability("attention_dropout", 0.0)?,
                residual: s.probability("resid_dropout", 0.0)?,
            },
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
}
