//! GPT-NeoX (`transformers/models/gpt_neox`).

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger};
use crate::model::parts::rotary_decoder::{
    FeedForwardForm, Form, QkvForm, QueryNorms, Residual, RotaryDecoderConfig, read_heads, read_rope,
};
use crate::model::parts::text::{MlpForm, TextFamily, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "gpt_neox",
        classes: &["GPTNeoXForCausalLM"],
    }],
    catalogue: catalogue!["EleutherAI/gpt-neox-20b",],
    overrides: &[],
    use_cache: UseCache::OfText,
};

static FORM: Form = Form {
    path: "gpt_neox",
    embedding: "embed_in",
    final_norm: "final_layer_norm",
    attention: "attention",
    output: "dense",
    qkv: QkvForm::Chunked,
    query_norms: QueryNorms::Shared,
    keeps_rotated: false,
    mlp: FeedForwardForm::Plain(MlpForm {
        names: ["dense_h_to_4h", "dense_4h_to_h"],
        bias: true,
    }),
    norms_first: true,
    residual: Residual::PartsFirst,
};

/// GPT-NeoX: attention and MLP in parallel after a layer norm each, rotary positions on a part of each head.
#[derive(Debug, Clone, PartialEq)]
pub struct GptNeoxConfig(pub RotaryDecoderConfig);

impl TextFamily for GptNeoxConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let [hidden, heads, head_dim] = read_heads(s, 6144, 64)?;
        s.only("partial_rotary_factor", "this share under `rotary_pct`", |_| false)?;
        let bias = s.flag("attention_bias", true)?;
        Ok(Self(RotaryDecoderConfig {
            form: &FORM,
            vocab: s.size("vocab_size", 50_432, limits::VOCAB)?,
            hidden,
            intermediate: s.size("intermediate_size", 24_576, limits::WIDTH * 4)?,
            layers: s.size("num_hidden_layers", 44, limits::LAYERS)?,
            heads,
            kv_heads: heads,
            max_positions: s.size_or("max_position_embeddings", 2048, limits::POSITIONS)?,
            activation: s.activation("hidden_act", Activation::Gelu)?,
            rope: read_rope(s, head_dim, s.optional_number("rotary_pct")?.unwrap_or(0.25))?,
            qkv_bias: bias,
            output_bias: bias,
            qk_norm: false,
            parallel: s.flag("use_parallel_residual", true)?,
            hidden_dropout: s.probability("hidden_dropout", 0.0)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", false)?,
        }))
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        self.0.build(b)
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.0.max_positions)
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
