//! GPTBigCode (`transformers/models/gpt_bigcode`), such as SantaCoder and StarCoder.

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger};
use crate::model::parts::gpt::{AttentionForm, Dropouts, GptConfig, GptForm};
use crate::model::parts::text::{MlpForm, TextFamily, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "gpt_bigcode",
        classes: &["GPTBigCodeForCausalLM"],
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

/// GPTBigCode: GPT-2 with linear maps, and one head of keys and values for all query heads.
#[derive(Debug, Clone, PartialEq)]
pub struct GptBigCodeConfig(pub GptConfig);

impl TextFamily for GptBigCodeConfig {
    fn facts() -> &'static Facts {
        &FACTS
    }

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size_of_either(["n_embd", "hidden_size"], 768, limits::WIDTH)?;
        let heads = s.size_of_either(["n_head", "num_attention_heads"], 12, limits::HEADS)?;
        s.divide(("n_embd", hidden), ("n_head", heads))?;
        s.only(
            "add_cross_attention",
            "false: attention to an encoder is not simulated",
            |v| v == false,
        )?;
        let keys = ["n_positions", "max_position_embeddings"];
        Ok(Self(GptConfig {
            form: &FORM,
            attention: AttentionForm::Fused {
                multi_query: s.flag("multi_query", true)?,
            },
            vocab: s.size("vocab_size", 50_257, limits::VOCAB)?,
            positions: s.with_defaults().size_of_either(keys, 1024, limits::POSITIONS)?,
            hidden,
            intermediate: s.size_or("n_inner", 4 * hidden, limits::WIDTH * 4)?,
            layers: s.size_of_either(["n_layer", "num_hidden_layers"], 12, limits::LAYERS)?,
            heads,
            activation: s.activation("activation_function", Activation::GeluTanh)?,
            dropouts: Dropouts {
                embedding: s.probability("embd_pdrop", 0.1)?,
                attention: s.probability("attn_pdrop", 0.1)?,
                residual: s.probability("resid_pdrop", 0.1)?,
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
            no_flash: None,
        }
    }
}
