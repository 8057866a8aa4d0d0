//! Configuration of LFM2.

use serde_json::Value;

use crate::model::ModelError;
use crate::model::answers::Heads;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::parts::mixed_layers::read_layers;
use crate::nn::ExpertSizes;

/// LFM2: short convolutions in most layers and attention in the others.
///
/// Source: `transformers/models/lfm2/configuration_lfm2.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Lfm2Config {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the gated MLP.
    pub intermediate: u64,
    /// For each layer, true if it is a short convolution.
    pub is_conv: Vec<bool>,
    /// Query heads of attention.
    pub heads: u64,
    /// Key and value heads of attention.
    pub kv_heads: u64,
    /// Elements of one head of attention.
    pub head_dim: u64,
    /// Longest sequence that the model was made for.
    pub max_positions: u64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
    /// True if the convolution and its projections have biases.
    pub conv_bias: bool,
    /// Positions that the convolution sees.
    pub kernel: u64,
    /// Experts in place of the MLP of some layers.
    pub experts: Option<Lfm2Experts>,
}

/// Experts of LFM2-MoE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lfm2Experts {
    /// Sizes of a layer's experts.
    pub sizes: ExpertSizes,
    /// Experts that each token is sent to.
    pub chosen: u64,
    /// Layers before those with experts.
    pub dense_layers: u64,
    /// True if the choice is corrected.
    pub has_bias: bool,
    /// True if the chosen experts' weights are divided by their sum.
    pub is_normalised: bool,
}

impl Lfm2Config {
    /// Reads LFM2-MoE, whose class has other defaults and knows neither `full_attn_idxs` nor a part of the MLP's width.
    ///
    /// Source: `transformers/models/lfm2_moe/configuration_lfm2_moe.py`.
    pub(crate) fn read_sparse(s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size("hidden_size", 2048, limits::WIDTH)?;
        s.required("layer_types", "the kind of each layer, \"conv\" or \"full_attention\"")?;
        let own = s.size("intermediate_size", 7168, limits::WIDTH * 4)?;
        let experts = s.size_or("num_experts", 32, limits::WIDTH)?;
        let key = "moe_intermediate_size";
        let intermediate = s.size_of_class(key, 1792, limits::WIDTH * 4)?;
        for (name, size) in [(key, intermediate), ("hidden_size", hidden)] {
            if size % 8 != 0 {
                return Err(s.wrong(name, &size.into(), "a multiple of 8 beside experts (grouped_mm)"));
            }
        }
        Ok(Self {
            hidden,
            intermediate: own,
            experts: Some(Lfm2Experts {
                sizes: ExpertSizes {
                    experts,
                    hidden,
                    intermediate,
                },
                chosen: s.size_or("num_experts_per_tok", 4, experts)?,
                dense_layers: s.optional_count("num_dense_layers", limits::LAYERS)?.unwrap_or(2),
                has_bias: s.flag("use_expert_bias", true)?,
                is_normalised: s.flag("norm_topk_prob", true)?,
            }),
            ..Self::read_dense(s)?
        })
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            intermediate: intermediate(s)?,
            ..Self::read_dense(s)?
        })
    }

    /// Reads what models with and without experts share; the width of the MLP is not known yet.
    fn read_dense(s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size("hidden_size", 2560, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 32, limits::HEADS)?;
        let kv_heads = s.size_or("num_key_value_heads", 8, limits::HEADS)?;
        s.divide(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
        let head_dim = match s.optional_size("head_dim", limits::HEAD_DIM)? {
            Some(given) => given,
            None => s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?,
        };
        let vocab = s.size("vocab_size", 65_536, limits::VOCAB)?;
        s.padding(vocab)?;
        let tied = s.flag("tie_word_embeddings", true)?;
        Ok(Self {
            vocab,
            hidden,
            intermediate: 0,
            is_conv: layers(s)?,
            heads,
            kv_heads,
            head_dim,
            max_positions: s.size_or("max_position_embeddings", 128_000, limits::POSITIONS)?,
            tie_word_embeddings: s.flag("tie_embedding", tied)?,
            conv_bias: s.flag("conv_bias", false)?,
            kernel: s.size_or("conv_L_cache", 3, limits::COUNT)?,
            experts: None,
        })
    }
}

impl Lfm2Config {
    /// Heads of attention.
    pub(crate) const fn attention_heads(&self) -> Heads {
        Heads {
            query: self.heads,
            key_value: self.kv_heads,
            width: self.head_dim,
        }
    }
}

/// Width inside the MLP: two thirds of the stated one, rounded up to a multiple (`Lfm2MLP`).
fn intermediate(s: &Section) -> Result<u64, ModelError> {
    let most = limits::WIDTH * 4;
    let own = s.size("intermediate_size", 12_288, most)?;
    let stated = s.size_or("block_ff_dim", own, most)?;
    if !s.flag("block_auto_adjust_ff_dim", true)? {
        return Ok(stated);
    }
    let part = 2 * stated / 3;
    let given = s.value("block_ffn_dim_multiplier");
    let multiplier = match (s.has("block_ffn_dim_multiplier"), given) {
        (true, None | Some(Value::Null)) => return Ok(part),
        _ => s.optional_number("block_ffn_dim_multiplier")?.unwrap_or(1.0),
    };
    let multiple = s.size_or("block_multiple_of", 256, limits::WIDTH)?;
    let scaled = (multiplier * part as f64) as u64;
    match (1..=most).contains(&scaled) {
        true => Ok(scaled.next_multiple_of(multiple)),
        false => Err(s.wrong(
            "block_ffn_dim_multiplier",
            &multiplier.into(),
            &format!("a factor that makes its MLP 1 to {most} wide"),
        )),
    }
}

/// Reads which layers are convolutions: `layer_types`, or all but those of `full_attn_idxs`, by default none.
fn layers(s: &Section) -> Result<Vec<bool>, ModelError> {
    read_layers(s, 32, "conv", |count| {
        let attention = s.optional_indices("full_attn_idxs", limits::LAYERS)?;
        let is_conv = |layer: u64| attention.as_ref().is_some_and(|list| !list.contains(&layer));
        Ok((0..count).map(is_conv).collect())
    })
}
