//! Persimmon (`transformers/models/persimmon`).

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger};
use crate::model::parts::rotary_decoder::{
    FeedForwardForm, Form, QkvForm, QueryNorms, Residual, RotaryDecoderConfig, read_heads, read_rope,
};
use crate::model::parts::text::{MlpForm, TextFamily, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "persimmon",
        classes: &["PersimmonForCausalLM"],
    }],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

static FORM: Form = Form {
    path: "model",
    embedding: "embed_tokens",
    final_norm: "final_layernorm",
    attention: "self_attn",
    output: "dense",
    qkv: QkvForm::Selected,
    query_norms: QueryNorms::Shared,
    keeps_rotated: true,
    mlp: FeedForwardForm::Plain(MlpForm {
        names: ["dense_h_to_4h", "dense_4h_to_h"],
        bias: true,
    }),
    norms_first: false,
    residual: Residual::InTurn,
};

/// Persimmon: layer norms, also of queries and keys, biases everywhere, rotary positions on half of each head.
#[derive(Debug, Clone, PartialEq)]
pub struct PersimmonConfig(pub RotaryDecoderConfig);

impl TextFamily for PersimmonConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let [hidden, heads, head_dim] = read_heads(s, 4096, 64)?;
        let vocab = s.size("vocab_size", 262_144, limits::VOCAB)?;
        s.padding(vocab)?;
        Ok(Self(RotaryDecoderConfig {
            form: &FORM,
            vocab,
            hidden,
            intermediate: s.size("intermediate_size", 16_384, limits::WIDTH * 4)?,
            layers: s.size("num_hidden_layers", 36, limits::LAYERS)?,
            heads,
            kv_heads: heads,
            max_positions: s.size_or("max_position_embeddings", 16_384, limits::POSITIONS)?,
            activation: s.activation("hidden_act", Activation::Relu2)?,
            rope: read_rope(s, head_dim, 0.5)?,
            qkv_bias: true,
            output_bias: true,
            qk_norm: s.flag("qk_layernorm", true)?,
            parallel: false,
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
