//! Configuration of OLMo Hybrid.

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::{
    Biases, DecoderConfig, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, Modules, NormPlacement,
    QueryNorms, Rotation, Windows,
};
use crate::model::facts::ModelType;
use crate::model::parts::mixed_layers::read_layers;
use crate::nn::{NormKind, RmsScale};

/// OLMo Hybrid: gated DeltaNet in most layers, and OLMo 3's block in the others.
///
/// Source: `transformers/models/olmo_hybrid/configuration_olmo_hybrid.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct OlmoHybridConfig {
    /// Attention, MLPs and norms.
    pub text: DecoderConfig,
    /// For each layer, true if it is gated DeltaNet.
    pub is_linear: Vec<bool>,
    /// True if RoPE rotates queries and keys of attention.
    pub has_positions: bool,
    /// Sizes of gated DeltaNet.
    pub delta: DeltaSizes,
}

/// Sizes of gated DeltaNet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeltaSizes {
    /// Heads of queries and keys.
    pub key_heads: u64,
    /// Heads of values, a multiple.
    pub value_heads: u64,
    /// Elements of a query's or key's head.
    pub key_width: u64,
    /// Elements of a value's head.
    pub value_width: u64,
    /// Positions that the convolution sees.
    pub kernel: u64,
    /// True if the rate of writing is doubled.
    pub doubles_beta: bool,
}

impl DeltaSizes {
    /// Elements of all queries, or of all keys.
    pub const fn keys(&self) -> u64 {
        self.key_heads * self.key_width
    }

    /// Elements of all values.
    pub const fn values(&self) -> u64 {
        self.value_heads * self.value_width
    }
}

/// Attention, MLPs and norms of OLMo Hybrid, as differences to Llama's.
pub(super) static ROW: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("olmo_hybrid", &["OlmoHybridForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 100_352,
        hidden: 3840,
        heads: 30,
        max_positions: 65_536,
        ..DecoderDefaults::LLAMA
    },
    biases: Biases::of_attention,
    windows: Windows::OTHER_KINDS,
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            norm: NormKind::Rms(RmsScale::WeightFirst),
            placement: NormPlacement::After,
            query_norms: QueryNorms::Whole,
            rotation: Rotation::ByF32,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};

/// Token that the class pads with, which has to be one of the vocabulary.
const PADDING: u64 = 100_277;

impl OlmoHybridConfig {
    pub(super) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = DecoderConfig::read(s, &ROW)?;
        if !s.has("pad_token_id") && text.vocab <= PADDING {
            let allowed = format!("more than {PADDING}, which the class pads with unless `pad_token_id` is another");
            return Err(s.wrong("vocab_size", &text.vocab.into(), &allowed));
        }
        let is_linear = read_layers(s, text.layers, "linear_attention", |count| {
            let mut layers: Vec<bool> = (0..count).map(|layer| layer % 4 != 3).collect();
            if let (true, Some(last)) = (layers.iter().all(|&linear| linear), layers.last_mut()) {
                *last = false;
            }
            Ok(layers)
        })?;
        if is_linear.iter().all(|&linear| linear == is_linear[0]) {
            let given = s.value("layer_types").cloned().unwrap_or_default();
            return Err(s.wrong("layer_types", &given, "layers of both kinds, linear and full attention"));
        }
        let table = s.optional_nested("rope_parameters", "rotary embedding")?;
        let no_base = |table: &Section| table.has("rope_theta") && table.value("rope_theta").is_none();
        Ok(Self {
            delta: delta(s, &text)?,
            has_positions: !table.is_some_and(|table| no_base(&table)),
            is_linear,
            text,
        })
    }
}

fn delta(s: &Section, text: &DecoderConfig) -> Result<DeltaSizes, ModelError> {
    let key_heads = s.size_or("linear_num_key_heads", text.heads, limits::HEADS)?;
    let value_heads = s.size_or("linear_num_value_heads", text.heads, limits::HEADS)?;
    s.divide(
        ("linear_num_value_heads", value_heads),
        ("linear_num_key_heads", key_heads),
    )?;
    let part = (0.75 * text.hidden as f64 / key_heads as f64) as u64;
    let key_width = s.size_or("linear_key_head_dim", part.max(1), limits::HEAD_DIM)?;
    Ok(DeltaSizes {
        key_heads,
        value_heads,
        key_width,
        value_width: s.size_or("linear_value_head_dim", 2 * key_width, limits::HEAD_DIM)?,
        kernel: s.size_or("linear_conv_kernel_dim", 4, limits::COUNT)?,
        doubles_beta: s.flag("linear_allow_neg_eigval", true)?,
    })
}
