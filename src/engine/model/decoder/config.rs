//! Configuration of decoders like Llama's.

use super::defaults::DecoderDefaults;
use super::expert_keys::{ExpertKeys, OfDense};
use super::experts::ExpertsConfig;
use super::family::{DecoderFamily, HeadRule, Modules, SoftCaps};
use super::forms::{LateScale, NormPlacement};
use super::latent_config::LatentConfig;
use super::own_sizes::OwnSizes;
use super::rope_tables;
use super::windows;
use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, Rope, limits};
use crate::nn::{NormKind, RmsScale};

/// A decoder like Llama's: RMS norms, rotary positions, gated MLP.
///
/// Source: `configuration_*.py` and `modeling_*.py` of each family in `transformers/models/`.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderConfig {
    /// Family, which decides the forward.
    pub family: &'static DecoderFamily,
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the gated MLP; 0 in a family without any.
    pub intermediate: u64,
    /// Blocks.
    pub layers: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads, a divisor of `heads`.
    pub kv_heads: u64,
    /// Elements of one head of queries and keys; `heads × head_dim` may differ from `hidden`.
    pub head_dim: u64,
    /// Longest sequence that the model was made for.
    pub max_positions: u64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
    /// True if query, key and value projections have biases.
    pub qkv_bias: bool,
    /// True if the output projection has a bias.
    pub o_bias: bool,
    /// True if the MLP's projections have biases.
    pub mlp_bias: bool,
    /// True if the head has a bias, where the decoder stands alone.
    pub head_bias: bool,
    /// True if queries and keys pass an RMS norm of `head_dim` elements.
    pub qk_norm: bool,
    /// Activation of the gate.
    pub activation: Activation,
    /// Sliding window of each layer in positions; `None` for a layer that sees all.
    pub windows: Vec<Option<u64>>,
    /// Rotary embedding.
    pub rope: Rope,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Dropout after each projection into the residual stream.
    pub residual_dropout: f64,
    /// Soft cap of attention scores.
    pub attention_softcap: Option<f64>,
    /// Soft cap of logits.
    pub logit_softcap: Option<f64>,
    /// Kind of all norms.
    pub(crate) norm: NormKind,
    /// True if embeddings are multiplied by a number after the masks are made.
    pub scales_late: bool,
    /// True if blocks with norms around their parts have those after them.
    pub norms_around: bool,
    /// True if the factor that the token embedding keeps as a buffer is a whole number; `None` if it keeps none.
    pub embed_scale_is_whole: Option<bool>,
    /// Experts in place of the MLP of some or all blocks.
    pub experts: Option<ExpertsConfig>,
    /// Sizes of latent attention, in a family that has it.
    pub latent: Option<LatentConfig>,
    /// Rotary embedding of sliding layers, in a family whose kinds of layers rotate different parts of heads.
    pub(crate) sliding_rope: Option<Rope>,
    /// What the family's own blocks have beside these.
    pub(crate) own: OwnSizes,
}

impl DecoderConfig {
    /// Returns true if Gemma's modules run it: scaled embeddings, `1 + weight` norms.
    pub const fn is_gemma(&self) -> bool {
        self.family.is_gemma()
    }

    /// Returns the decoder if pipelines are simulated for its family.
    pub(crate) fn pipelined(&self) -> Option<&Self> {
        self.family.pipeline.then_some(self)
    }

    pub(crate) fn read(s: &Section, family: &'static DecoderFamily) -> Result<Self, ModelError> {
        Self::read_with(s, family, &family.defaults)
    }

    /// Reads a decoder with the given defaults instead of its family's.
    pub(crate) fn read_with(
        s: &Section,
        family: &'static DecoderFamily,
        d: &DecoderDefaults,
    ) -> Result<Self, ModelError> {
        let hidden = s.size("hidden_size", d.hidden, limits::WIDTH)?;
        let layers = s.size(family.layers_key(), d.layers, limits::LAYERS)?;
        let heads = s.size("num_attention_heads", d.heads, limits::HEADS)?;
        let vocab = s.size("vocab_size", d.vocab, limits::VOCAB)?;
        let latent = family.latent().map(|keys| LatentConfig::read(s, keys, [hidden, heads]));
        let latent = latent.transpose()?;
        let kv_heads = kv_heads(s, d, heads, latent.is_some())?;
        let head_dim = head_dim(s, family, d, ([hidden, heads], latent.as_ref()))?;
        s.padding(vocab)?;
        let biases = (family.biases)(s)?;
        let (rope, sliding_rope) = ropes(s, family, d)?;
        let read = Self {
            family,
            vocab,
            hidden,
            intermediate: intermediate(s, family, d)?,
            layers,
            heads,
            kv_heads,
            head_dim,
            max_positions: s.size_or("max_position_embeddings", d.max_positions, limits::POSITIONS)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", d.tie)?,
            qkv_bias: biases.qkv,
            o_bias: biases.output,
            mlp_bias: biases.mlp,
            head_bias: switched(s, family.head_bias_key(), false)?,
            qk_norm: switched(s, family.query_norms_key(), family.qk_norm)?,
            activation: activation(s, family, d)?,
            windows: windows::read(s, family, layers, d)?,
            rope,
            attention_dropout: s.probability("attention_dropout", d.attention_dropout)?,
            residual_dropout: residual_dropout(s, family)?,
            attention_softcap: soft_cap(s, family.soft_caps, "attn_logit_softcapping", 50.0)?,
            logit_softcap: soft_cap(s, family.soft_caps, "final_logit_softcapping", 30.0)?,
            norm: norm(s, family),
            scales_late: match family.late_scale() {
                LateScale::Never => false,
                LateScale::Replaces => true,
                LateScale::Beside(key) => s.flag(key, false)?,
            },
            norms_around: norms_around(s, family)?,
            embed_scale_is_whole: family
                .embed_scale_key()
                .map(|(key, default)| s.value(key).map_or(default, |v| !v.is_f64())),
            experts: family
                .experts()
                .map(|keys| ExpertsConfig::read(s, keys, [hidden, layers]))
                .transpose()?,
            latent,
            sliding_rope,
            own: OwnSizes::Usual,
        };
        let own = (family.own)(s, &read)?;
        Ok(Self { own, ..read })
    }
}

/// Reads the rotary embedding of all layers, and that of sliding ones if they have their own.
fn ropes(s: &Section, family: &DecoderFamily, d: &DecoderDefaults) -> Result<(Rope, Option<Rope>), ModelError> {
    match family.kind_shares() {
        Some(shares) => rope_tables::read(s, d.theta, shares),
        None => Ok((Rope::read(s, d.theta, d.partial_rotary)?, None)),
    }
}

/// Reads the dropout after each projection into the residual stream.
fn residual_dropout(s: &Section, family: &DecoderFamily) -> Result<f64, ModelError> {
    match family.residual_dropout {
        Some((key, default)) => s.probability(key, default),
        None => Ok(0.0),
    }
}

/// Reads if blocks with norms around their parts have those after them.
fn norms_around(s: &Section, family: &DecoderFamily) -> Result<bool, ModelError> {
    match family.block().placement {
        NormPlacement::Around(_, Some(switch)) => s.flag(switch, true),
        NormPlacement::Around(_, None) => Ok(true),
        _ => Ok(false),
    }
}

/// Reads the key and value heads: with latent attention as many as the `heads` of queries, which null stands for there.
fn kv_heads(s: &Section, d: &DecoderDefaults, heads: u64, is_latent: bool) -> Result<u64, ModelError> {
    let key = "num_key_value_heads";
    let kv_heads = match d.kv_heads {
        Some(default) if !(s.has(key) && is_latent) => s.size_of_class(key, default, limits::HEADS)?,
        _ => s.size_or(key, heads, limits::HEADS)?,
    };
    match is_latent {
        true => s.equal(("num_attention_heads", heads), (key, kv_heads))?,
        false => drop(s.divide(("num_attention_heads", heads), (key, kv_heads))?),
    }
    Ok(kv_heads)
}

/// Reads the elements of one head, in a decoder of `hidden` elements and `heads` query heads.
fn head_dim(
    s: &Section,
    family: &DecoderFamily,
    d: &DecoderDefaults,
    ([hidden, heads], latent): ([u64; 2], Option<&LatentConfig>),
) -> Result<u64, ModelError> {
    if let Some(latent) = latent {
        if family.heads == HeadRule::Divides {
            s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
        }
        return Ok(latent.width());
    }
    let given = match d.head_dim {
        Some(default) => Some(s.size_of_class("head_dim", default, limits::HEAD_DIM)?),
        None => s.optional_size("head_dim", limits::HEAD_DIM)?,
    };
    let head_dim = match given {
        Some(n) if family.heads != HeadRule::Divides => n,
        _ if family.heads == HeadRule::Floors => (hidden / heads).max(1),
        _ => {
            let part = s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
            given.unwrap_or(part)
        }
    };
    if family.heads == HeadRule::Fills {
        s.equal(
            ("hidden_size", hidden),
            ("num_attention_heads × head_dim", heads * head_dim),
        )?;
    }
    Ok(head_dim)
}

/// Reads what a key switches on, in a family that has one.
fn switched(s: &Section, key: Option<&'static str>, otherwise: bool) -> Result<bool, ModelError> {
    match key {
        Some(key) => s.flag(key, false),
        None => Ok(otherwise),
    }
}

/// Key of the activation: the family's newer one if the file has it; older files of all families use `hidden_act`.
fn activation_key(s: &Section, family: &DecoderFamily) -> &'static str {
    match family.newer_activation_key {
        Some(key) if s.value(key).is_some() => key,
        _ => "hidden_act",
    }
}

/// Reads the width inside the MLP of layers that have one; 0 if none has.
fn intermediate(s: &Section, family: &DecoderFamily, d: &DecoderDefaults) -> Result<u64, ModelError> {
    // No layer has an MLP, and no key says how wide it would be.
    if family.experts().is_some_and(ExpertKeys::are_everywhere) {
        return Ok(0);
    }
    let width = s.size(family.intermediate_key(), d.intermediate, limits::WIDTH * 4)?;
    match family.experts().map(|keys| keys.of_dense) {
        Some(OfDense::Prefix([key, _])) => s.size_or(key, width, limits::WIDTH * 4),
        _ => Ok(width),
    }
}

/// Kind of all norms.
fn norm(s: &Section, family: &DecoderFamily) -> NormKind {
    match family.modules {
        Modules::Llama(modules) if modules.rms_key.is_some_and(|key| s.value(key).is_some()) => {
            NormKind::Rms(RmsScale::Weight)
        }
        _ => family.block().norm,
    }
}

/// Reads the activation; only a family whose default is xIELU has modules for its parameters.
fn activation(s: &Section, family: &DecoderFamily, d: &DecoderDefaults) -> Result<Activation, ModelError> {
    if family.has_own_activation() {
        return Ok(d.activation);
    }
    let key = activation_key(s, family);
    let is_own = d.activation == Activation::Xielu && s.value(key).is_some_and(|name| name == "xielu");
    match is_own {
        true => Ok(Activation::Xielu),
        false => s.activation(key, d.activation),
    }
}

/// Reads a soft cap; `default` is that of an absent key in families that have one.
fn soft_cap(s: &Section, caps: SoftCaps, key: &str, default: f64) -> Result<Option<f64>, ModelError> {
    match caps {
        SoftCaps::None => Ok(None),
        SoftCaps::Default if !s.has(key) => Ok(Some(default)),
        SoftCaps::Given | SoftCaps::Default => s.optional_number(key),
    }
}
