//! Zamba (`transformers/models/zamba`).

mod mixer;
mod transformer;

use std::rc::Rc;

use serde_json::Value;

use super::zamba2::{Before, Layer, MambaLayer, Transform, Zamba2, headed};
use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, NoFlash};
use crate::model::parts::mamba2::ConvSizes;
use crate::model::takes::Takes;
use crate::nn::{Builder, Embedding, Linear, Numbered, RmsNorm};
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType::new("zamba", &["ZambaForCausalLM"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// Zamba: Mamba in all layers, of heads that scan one after the other, and before that of some one transformer block.
#[derive(Debug, Clone, PartialEq)]
pub struct ZambaConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the transformer block's MLP.
    pub intermediate: u64,
    /// Attention heads.
    pub heads: u64,
    /// Heads of keys and values.
    pub kv_heads: u64,
    /// Elements of an attention head.
    pub head_dim: u64,
    /// Positions that the model was trained for.
    pub max_positions: u64,
    /// For each layer, true if the transformer block comes before its mixer.
    pub is_hybrid: Vec<bool>,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Heads of a mixer.
    pub mamba_heads: u64,
    /// Width inside a mixer.
    pub inner: u64,
    /// Elements of a head's state.
    pub state: u64,
    /// Elements that time steps are made from.
    pub rank: u64,
    /// Convolution of a mixer.
    pub conv: ConvSizes,
    /// True if the projections of mixers have biases.
    pub bias: bool,
    /// True if the head shares the token embedding's weight, and layers their transformer block.
    pub tie_word_embeddings: bool,
}

impl Registered for ZambaConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size("hidden_size", 3712, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 16, limits::HEADS)?;
        let kv_heads = s.size_or("num_key_value_heads", 16, limits::HEADS)?;
        s.divide(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
        let wide = s
            .optional_size("attention_hidden_size", limits::WIDTH * 2)?
            .unwrap_or(2 * hidden);
        s.equal(("attention_hidden_size", wide), ("2 × hidden_size", 2 * hidden))?;
        let vocab = s.size("vocab_size", 32_000, limits::VOCAB)?;
        s.padding(vocab)?;
        let inner = s.size_or("mamba_expand", 2, limits::COUNT)? * hidden;
        let mamba_heads = s.size_or("n_mamba_heads", 2, limits::HEADS)?;
        s.divide(("mamba_expand × hidden_size", inner), ("n_mamba_heads", mamba_heads))?;
        let of_width = s.value("mamba_dt_rank").is_none_or(|rank| rank == "auto");
        let head_dim = s.optional_size("attention_head_dim", limits::HEAD_DIM)?;
        let is_hybrid = layers(s)?;
        let ties = s.flag("tie_word_embeddings", true)?;
        if ties && is_hybrid.iter().filter(|&&hybrid| hybrid).count() == 1 {
            let given = s.value("layers_block_type").unwrap_or(&Value::Null);
            let allowed = "more than one hybrid layer, or none: transformers 5.17 fails where nothing shares a block";
            return Err(s.wrong("layers_block_type", given, allowed));
        }
        Ok(Self {
            vocab,
            hidden,
            intermediate: s.size("intermediate_size", 14_848, limits::WIDTH * 4)?,
            heads,
            kv_heads,
            head_dim: head_dim.unwrap_or(2 * hidden / heads),
            max_positions: s.size_or("max_position_embeddings", 4096, limits::POSITIONS)?,
            is_hybrid,
            activation: s.activation("hidden_act", Activation::Gelu)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            mamba_heads,
            inner,
            state: s.size_or("mamba_d_state", 16, limits::WIDTH)?,
            rank: match of_width {
                true => hidden.div_ceil(16),
                false => s.size_or("mamba_dt_rank", 1, limits::WIDTH)?,
            },
            conv: ConvSizes {
                kernel: s.size_or("mamba_d_conv", 4, limits::COUNT)?,
                bias: s.flag("mamba_conv_bias", true)?,
                activation: s.activation("hidden_mamba_act", Activation::Silu)?,
            },
            bias: s.flag("mamba_proj_bias", false)?,
            tie_word_embeddings: ties,
        })
    }
}

/// Reads which layers have the transformer block.
fn layers(s: &Section) -> Result<Vec<bool>, ModelError> {
    let count = s.size("num_hidden_layers", 76, limits::LAYERS)?;
    let layers = layers_of(s, count)?;
    if layers.len() as u64 != count {
        // `validate_layer_type`; three layers are the fewest that the class makes by itself.
        let allowed = format!("{}, the number of `layers_block_type`", layers.len());
        return Err(s.wrong("num_hidden_layers", &count.into(), &allowed));
    }
    Ok(layers)
}

/// Reads for each layer whether it has attention: from the list in the file, or from its period and offset.
fn layers_of(s: &Section, count: u64) -> Result<Vec<bool>, ModelError> {
    let Some(types) = s.value("layers_block_type").or(s.value("layer_types")) else {
        let period = s.size_or("attn_layer_period", 6, limits::LAYERS)?;
        let offset = s.optional_count("attn_layer_offset", limits::LAYERS)?.unwrap_or(4);
        return Ok((0..count.max(3))
            .map(|i| i == 2 || i > 2 && (i - 3) % period == offset)
            .collect());
    };
    let wrong = || {
        s.wrong(
            "layers_block_type",
            types,
            "entries \"mamba\", \"linear_attention\" or \"hybrid\"",
        )
    };
    let list = types.as_array().filter(|list| !list.is_empty()).ok_or_else(wrong)?;
    let is_hybrid = |kind: &Value| match kind.as_str() {
        Some("hybrid") => Ok(true),
        Some("mamba" | "linear_attention") => Ok(false),
        _ => Err(wrong()),
    };
    list.iter().map(is_hybrid).collect()
}

/// `ZambaModel`.
fn model(b: &Builder, c: &ZambaConfig) -> Zamba2 {
    let t = b.tape();
    let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab, c.hidden);
    let mut made: Option<Rc<dyn Transform>> = None;
    let mut layers = Vec::new();
    for (i, &is_hybrid) in c.is_hybrid.iter().enumerate() {
        let mamba = |module| MambaLayer::new(b, c.hidden, module, || Box::new(mixer::Mixer::new(b, c)));
        let make = || {
            if !is_hybrid {
                return Rc::new(Layer::of(None, mamba(None)));
            }
            let block = || Rc::new(t.scope("shared_transf", || transformer::SharedTransformer::new(b, c)));
            // A class that ties no weights leaves each layer its own block.
            let transformer = match made.take().filter(|_| c.tie_word_embeddings) {
                Some(shared) => shared,
                None => block(),
            };
            made = Some(transformer.clone());
            let before = Before {
                transformer,
                linear: Linear::new(b, "linear", c.hidden, c.hidden, false),
                index: 0,
            };
            let mamba = t.scope("mamba_decoder", || mamba(Some(b.module())));
            Rc::new(Layer::of(Some(before), mamba))
        };
        layers.push(Numbered::new(b, "layers", i, make));
    }
    Zamba2 {
        embed_tokens,
        layers,
        norm: RmsNorm::new(b, "final_layernorm", c.hidden),
        rotary: None,
        hands_positions: false,
    }
}

impl Family for ZambaConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(headed(b, self.tie_word_embeddings, || model(b, self)))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::ExactWithout(&["mamba-ssm", "causal-conv1d"])
    }

    fn takes(&self) -> Takes {
        Takes::TEXT
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads {
            query: self.heads,
            key_value: self.kv_heads,
            width: self.head_dim,
        }
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, _: &Setup) -> u64 {
        0
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::FIXED
    }

    /// Adapters on a block that layers share were not compared.
    fn support(&self) -> Support<'_> {
        Support {
            adapters: AdapterMaps::None,
            no_flash: Some(NoFlash::NotSimulated),
            ..Support::USUAL
        }
    }

    /// The mixer of a hybrid layer is a layer that is checkpointed too.
    fn nests_checkpoints(&self) -> bool {
        true
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
