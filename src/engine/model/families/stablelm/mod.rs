//! StableLM (`transformers/models/stablelm`).

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
use crate::model::parts::text::{TextFamily, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "stablelm",
        classes: &["StableLmForCausalLM"],
    }],
    catalogue: catalogue!["stabilityai/stablelm-3b-4e1t",],
    overrides: &[],
    use_cache: UseCache::OfText,
};

static FORM: Form = Form {
    path: "model",
    embedding: "embed_tokens",
    final_norm: "norm",
    attention: "self_attn",
    output: "o_proj",
    qkv: QkvForm::Separate,
    query_norms: QueryNorms::EachHead,
    keeps_rotated: true,
    mlp: FeedForwardForm::Gated,
    norms_first: false,
    residual: Residual::StreamFirst,
};

/// StableLM: layer norms, a gated MLP, rotary positions on a part of each head.
#[derive(Debug, Clone, PartialEq)]
pub struct StableLmConfig(pub RotaryDecoderConfig);

impl TextFamily for StableLmConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let [hidden, heads, head_dim] = read_heads(s, 2560, 32)?;
        let kv_heads = s.size("num_key_value_heads", 32, limits::HEADS)?;
        s.divide(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
        let vocab = s.size("vocab_size", 50_304, limits::VOCAB)?;
        s.padding(vocab)?;
        Ok(Self(RotaryDecoderConfig {
            form: &FORM,
            vocab,
            hidden,
            intermediate: s.size("intermediate_size", 6912, limits::WIDTH * 4)?,
            layers: s.size("num_hidden_layers", 32, limits::LAYERS)?,
            heads,
            kv_heads,
            max_positions: s.size_or("max_position_embeddings", 4096, limits::POSITIONS)?,
            activation: s.activation("hidden_act", Activation::Silu)?,
            rope: read_rope(s, head_dim, 0.25)?,
            qkv_bias: s.flag("use_qkv_bias", false)?,
            output_bias: false,
            qk_norm: s.flag("qk_layernorm", false)?,
            parallel: s.flag("use_parallel_residual", false)?,
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
        Heads {
            query: self.0.heads,
            key_value: self.0.kv_heads,
            width: self.0.head_dim(),
        }
    }

    fn libraries(&self) -> TextSupport {
        TextSupport {
            adapters: AdapterMaps::Usual,
            liger: Liger::Unknown,
            no_flash: None,
        }
    }
}
