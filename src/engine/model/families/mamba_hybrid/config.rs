//! Configuration of decoders whose layers scan Mamba 2's states, attend, or do both.

use serde_json::Value;

use super::rows;
use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::families::mamba::{Kind, MambaConfig};
use crate::model::parts::mamba2::{ConvSizes, Gating, Mamba2Config, Mamba2Sizes};
use crate::nn::Activation;

/// Bamba, the Granite hybrids, Nemotron-H, Falcon H1 or Jamba.
///
/// Source: `transformers/models/{bamba,granitemoehybrid,nemotron_h,falcon_h1,jamba}/configuration_*.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct MambaHybridConfig {
    /// The model.
    pub kind: HybridKind,
    /// Attention, MLPs and experts.
    pub text: DecoderConfig,
    /// Mixers with a state.
    pub mamba: Scan,
    /// Kinds of the layers.
    pub layers: Vec<LayerKind>,
    /// True if RoPE rotates queries and keys.
    pub has_positions: bool,
    /// For each layer, true if it has experts in place of an MLP (Jamba).
    pub sparse: Vec<bool>,
    /// Elements of the MLP that all tokens pass beside the experts; 0 if there is none.
    pub shared: u64,
    /// Elements that experts get and return, where they are not those of the residual stream (Nemotron-H).
    pub latent: Option<u64>,
}

/// Mixers with a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scan {
    /// Those of Mamba (Jamba).
    First(Box<MambaConfig>),
    /// Those of Mamba 2.
    Second(Mamba2Config),
}

/// Models of the family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HybridKind {
    /// Bamba.
    Bamba,
    /// The Granite hybrids.
    Granite,
    /// Nemotron-H.
    Nemotron,
    /// Falcon H1.
    Falcon,
    /// Jamba.
    Jamba,
}

/// Kinds of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerKind {
    /// Scans a state.
    Mamba,
    /// Attends.
    Attention,
    /// Does both (Falcon H1).
    Both,
    /// An MLP alone (Nemotron-H).
    Mlp,
    /// Experts alone (Nemotron-H).
    Experts,
}

impl MambaHybridConfig {
    pub(super) fn read_of(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        match model_type {
            "bamba" => Self::read_bamba(s),
            "granitemoehybrid" => Self::read_granite(s),
            "nemotron_h" => Self::read_nemotron(s),
            "jamba" => Self::read_jamba(s),
            _ => Self::read_falcon(s),
        }
    }

    fn read_bamba(s: &Section) -> Result<Self, ModelError> {
        let text = DecoderConfig::read(s, &rows::BAMBA)?;
        let attention = s
            .optional_indices("attn_layer_indices", limits::LAYERS)?
            .unwrap_or_default();
        let kind = |i: u64| match attention.contains(&i) {
            true => LayerKind::Attention,
            false => LayerKind::Mamba,
        };
        Ok(Self {
            kind: HybridKind::Bamba,
            mamba: Scan::Second(expanded(s, &text)?),
            layers: (0..text.layers).map(kind).collect(),
            has_positions: true,
            shared: 0,
            latent: None,
            sparse: Vec::new(),
            text,
        })
    }

    fn read_granite(s: &Section) -> Result<Self, ModelError> {
        let key = "num_local_experts";
        let has_experts = s.optional_count(key, limits::WIDTH)? != Some(0);
        let row = if has_experts {
            &rows::GRANITE
        } else {
            &rows::GRANITE_DENSE
        };
        let text = DecoderConfig::read(s, row)?;
        let key = "position_embedding_type";
        s.only(key, "null or \"rope\"", |v| v == "rope")?;
        let layers = layer_types(s, "layer_types", text.layers)?;
        Ok(Self {
            kind: HybridKind::Granite,
            mamba: Scan::Second(expanded(s, &text)?),
            layers: layers.unwrap_or_else(|| vec![LayerKind::Mamba; text.layers as usize]),
            has_positions: s.value(key).is_some(),
            shared: s.size_or("shared_intermediate_size", 1024, limits::WIDTH * 4)?,
            latent: None,
            sparse: Vec::new(),
            text,
        })
    }

    fn read_nemotron(s: &Section) -> Result<Self, ModelError> {
        let intermediate = s.size("intermediate_size", 21_504, limits::WIDTH * 4)?;
        for (key, limit) in [("hidden_size", limits::WIDTH), ("vocab_size", limits::VOCAB)] {
            s.size(key, 1, limit)?;
        }
        // Newer files have no number of layers, which is that of their kinds.
        let text = DecoderConfig {
            intermediate,
            ..DecoderConfig::read(&s.with_defaults(), &rows::NEMOTRON)?
        };
        s.only(
            "num_nextn_predict_layers",
            "0: heads for more tokens are not simulated",
            |v| v.as_u64() == Some(0),
        )?;
        let layers = match s.optional_text("hybrid_override_pattern")? {
            Some(pattern) if s.value("layers_block_type").is_none() => from_pattern(s, pattern)?,
            _ => nemotron_layers(s)?,
        };
        let either = |[newer, usual]: [&str; 2], default, limit| {
            let key = if s.has(newer) { newer } else { usual };
            s.size_or(key, default, limit)
        };
        let heads = s.size_or("mamba_num_heads", 128, limits::HEADS)?;
        let groups = either(["mamba_n_groups", "n_groups"], 8, limits::HEADS)?;
        s.divide(("mamba_num_heads", heads), ("n_groups", groups))?;
        let newer = "mamba_conv_bias";
        let conv_bias = s.flag(if s.has(newer) { newer } else { "use_conv_bias" }, true)?;
        let bias = s.flag("use_bias", false)?;
        let mamba = Mamba2Config {
            hidden: text.hidden,
            sizes: Mamba2Sizes {
                heads,
                head_dim: s.size_or("mamba_head_dim", 64, limits::HEAD_DIM)?,
                groups,
                state: s.size_or("ssm_state_size", 128, limits::WIDTH)?,
                chunk: either(["mamba_chunk_size", "chunk_size"], 128, limits::COUNT)?,
            },
            conv: ConvSizes {
                kernel: either(["mamba_d_conv", "conv_kernel"], 4, limits::COUNT)?,
                bias: conv_bias,
                activation: s.activation("mamba_hidden_act", Activation::Silu)?,
            },
            in_bias: bias,
            out_bias: bias,
            gating: Gating::BeforeNormOf(groups),
            has_multipliers: false,
        };
        Ok(Self {
            kind: HybridKind::Nemotron,
            mamba: Scan::Second(mamba),
            layers,
            has_positions: false,
            shared: s.size_or("moe_shared_expert_intermediate_size", 7688, limits::WIDTH * 4)?,
            latent: s.optional_size("moe_latent_size", limits::WIDTH)?,
            sparse: Vec::new(),
            text,
        })
    }

    fn read_jamba(s: &Section) -> Result<Self, ModelError> {
        let has_experts = s.size_or("num_experts", 16, limits::WIDTH)? > 1;
        let row = if has_experts { &rows::JAMBA } else { &rows::JAMBA_DENSE };
        let text = DecoderConfig::read(s, row)?;
        let every = |[period, offset]: [&str; 2], [of_period, of_offset]: [u64; 2]| -> Result<Vec<bool>, ModelError> {
            let length = s.size_or(period, of_period, limits::LAYERS)?;
            let first = s.optional_count(offset, limits::LAYERS)?.unwrap_or(of_offset);
            if first >= length {
                return Err(s.wrong(offset, &first.into(), &format!("less than {period}, {length}")));
            }
            Ok((0..text.layers).map(|layer| layer % length == first).collect())
        };
        let attends = every(["attn_layer_period", "attn_layer_offset"], [8, 4])?;
        let kind = |attends: &bool| {
            if *attends {
                LayerKind::Attention
            } else {
                LayerKind::Mamba
            }
        };
        let sparse = every(["expert_layer_period", "expert_layer_offset"], [2, 1])?;
        Ok(Self {
            kind: HybridKind::Jamba,
            mamba: Scan::First(Box::new(first_scan(s, &text)?)),
            layers: attends.iter().map(kind).collect(),
            has_positions: false,
            sparse: sparse.into_iter().map(|sparse| sparse && has_experts).collect(),
            shared: 0,
            latent: None,
            text,
        })
    }

    fn read_falcon(s: &Section) -> Result<Self, ModelError> {
        let text = DecoderConfig::read(s, &rows::FALCON)?;
        for (key, count) in [("mlp_multipliers", 2), ("ssm_multipliers", 5)] {
            let allowed = format!("{count} numbers");
            s.only(key, &allowed, |list| {
                list.as_array().is_some_and(|list| list.len() == count)
            })?;
        }
        let inner = match s.has("mamba_d_ssm") {
            true => s.optional_size("mamba_d_ssm", limits::WIDTH)?,
            false => Some(1024),
        };
        let groups = s.size_or("mamba_n_groups", 1, limits::HEADS)?;
        let of = |inner| mixer(s, text.hidden, inner);
        let mamba = match inner {
            Some(inner) => of(inner)?,
            None => expanded(s, &text)?,
        };
        s.divide(("mamba_d_ssm", mamba.sizes.inner()), ("mamba_n_groups", groups))?;
        Ok(Self {
            kind: HybridKind::Falcon,
            mamba: Scan::Second(Mamba2Config {
                out_bias: s.flag("projectors_bias", false)?,
                gating: match s.flag("mamba_rms_norm", false)? {
                    true => Gating::BesideNorm {
                        groups,
                        norm_first: s.flag("mamba_norm_before_gate", true)?,
                    },
                    false => Gating::Alone,
                },
                has_multipliers: true,
                ..mamba
            }),
            layers: vec![LayerKind::Both; text.layers as usize],
            has_positions: true,
            shared: 0,
            latent: None,
            sparse: Vec::new(),
            text,
        })
    }
}

/// Reads Jamba's mixer.
fn first_scan(s: &Section, text: &DecoderConfig) -> Result<MambaConfig, ModelError> {
    let rank = match s.value("mamba_dt_rank") {
        Some(Value::Number(_)) => s.size("mamba_dt_rank", 1, limits::WIDTH)?,
        _ => text.hidden.div_ceil(16),
    };
    Ok(MambaConfig {
        vocab: text.vocab,
        hidden: text.hidden,
        intermediate: text.hidden * s.size_or("mamba_expand", 2, 64)?,
        state: s.size_or("mamba_d_state", 16, limits::WIDTH)?,
        time_step_rank: rank,
        layers: text.layers,
        conv: ConvSizes {
            kernel: s.size_or("mamba_d_conv", 4, limits::COUNT)?,
            bias: s.flag("mamba_conv_bias", true)?,
            activation: text.activation,
        },
        bias: s.flag("mamba_proj_bias", false)?,
        residual_in_fp32: false,
        tie_word_embeddings: text.tie_word_embeddings,
        kind: Kind::Jamba,
    })
}

/// Reads a mixer that is `mamba_expand` times as wide as the residual stream.
fn expanded(s: &Section, text: &DecoderConfig) -> Result<Mamba2Config, ModelError> {
    let expand = s.size_or("mamba_expand", 2, 64)?;
    mixer(s, text.hidden, expand * text.hidden)
}

/// Reads a mixer of `inner` elements.
fn mixer(s: &Section, hidden: u64, inner: u64) -> Result<Mamba2Config, ModelError> {
    let heads = s.size_or("mamba_n_heads", 128, limits::HEADS)?;
    let part = s.divide(("mamba_expand × hidden_size", inner), ("mamba_n_heads", heads))?;
    let head_dim = match s.value("mamba_d_head") {
        Some(Value::String(text)) if text == "auto" => part,
        None => part,
        Some(_) => s.size("mamba_d_head", part, limits::WIDTH)?,
    };
    let of_heads = ("mamba_n_heads × mamba_d_head", heads * head_dim);
    s.equal(("mamba_expand × hidden_size", inner), of_heads)?;
    let groups = s.size_or("mamba_n_groups", 1, limits::HEADS)?;
    s.divide(("mamba_n_heads", heads), ("mamba_n_groups", groups))?;
    let bias = s.flag("mamba_proj_bias", false)?;
    Ok(Mamba2Config {
        hidden,
        sizes: Mamba2Sizes {
            heads,
            head_dim,
            groups,
            state: s.size_or("mamba_d_state", 256, limits::WIDTH)?,
            chunk: s.size_or("mamba_chunk_size", 256, limits::COUNT)?,
        },
        conv: ConvSizes {
            kernel: s.size_or("mamba_d_conv", 4, limits::COUNT)?,
            bias: s.flag("mamba_conv_bias", true)?,
            activation: s.activation("hidden_act", Activation::Silu)?,
        },
        in_bias: bias,
        out_bias: bias,
        gating: Gating::BeforeNorm,
        has_multipliers: false,
    })
}

/// Kind of a layer by its name in files, older ones too (`_LEGACY_LAYER_TYPE_REMAP`).
fn kind_of(name: &str) -> Option<LayerKind> {
    Some(match name {
        "linear_attention" | "mamba" => LayerKind::Mamba,
        "full_attention" | "attention" => LayerKind::Attention,
        "mlp" => LayerKind::Mlp,
        "moe" => LayerKind::Experts,
        _ => return None,
    })
}

/// Reads the kinds of `count` layers under a key, if it is given.
fn layer_types(s: &Section, key: &str, count: u64) -> Result<Option<Vec<LayerKind>>, ModelError> {
    let Some(types) = s.value(key) else { return Ok(None) };
    let allowed = format!("{count} entries, each \"linear_attention\" or \"full_attention\"");
    let kinds = kinds(types).filter(|kinds| {
        let mixes = |kind: &LayerKind| matches!(kind, LayerKind::Mamba | LayerKind::Attention);
        kinds.len() as u64 == count && kinds.iter().all(mixes)
    });
    kinds.map(Some).ok_or_else(|| s.wrong(key, types, &allowed))
}

fn kinds(types: &Value) -> Option<Vec<LayerKind>> {
    types.as_array()?.iter().map(|kind| kind_of(kind.as_str()?)).collect()
}

/// Reads `layers_block_type` of Nemotron-H, by default one layer of each kind.
fn nemotron_layers(s: &Section) -> Result<Vec<LayerKind>, ModelError> {
    let key = if s.value("layers_block_type").is_some() {
        "layers_block_type"
    } else {
        "layer_types"
    };
    let Some(types) = s.value(key) else {
        return Ok(vec![
            LayerKind::Mamba,
            LayerKind::Experts,
            LayerKind::Attention,
            LayerKind::Mlp,
        ]);
    };
    let allowed = "entries \"linear_attention\", \"full_attention\", \"mlp\" or \"moe\"";
    kinds(types)
        .filter(|kinds| (1..=limits::LAYERS).contains(&(kinds.len() as u64)))
        .ok_or_else(|| s.wrong(key, types, allowed))
}

/// Kinds of layers from a word with a letter for each (`NemotronHConfig._pattern_to_list`).
fn from_pattern(s: &Section, pattern: &str) -> Result<Vec<LayerKind>, ModelError> {
    let kind = |letter| match letter {
        'M' => Some(LayerKind::Mamba),
        'E' => Some(LayerKind::Experts),
        '*' => Some(LayerKind::Attention),
        '-' => Some(LayerKind::Mlp),
        _ => None,
    };
    let kinds: Option<Vec<_>> = pattern.chars().map(kind).collect();
    kinds
        .filter(|kinds| (1..=limits::LAYERS).contains(&(kinds.len() as u64)))
        .ok_or_else(|| {
            s.wrong(
                "hybrid_override_pattern",
                &pattern.into(),
                "letters M, E, * and -, one for each layer",
            )
        })
}
