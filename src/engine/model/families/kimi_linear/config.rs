//! Configuration of Kimi Linear.

use serde_json::Value;

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::{
    Biases, ChosenWeights, DecoderConfig, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, GroupKeys,
    GroupScores, LatentKeys, LatentRotation, LlamaModules, Modules, OfDense, SharedKeys, TableWidth, Windows, not_null,
};
use crate::model::facts::ModelType;
use crate::model::parts::mixed_layers::read_layers;

/// Kimi Linear: delta attention in most layers, and DeepSeek-V3's latent attention without positions in the others, before
/// its experts.
///
/// Source: `transformers/models/kimi_linear/configuration_kimi_linear.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct KimiLinearConfig {
    /// Latent attention, experts, MLPs and norms.
    pub text: DecoderConfig,
    /// For each layer, true if it is delta attention.
    pub is_linear: Vec<bool>,
    /// Sizes of delta attention.
    pub delta: DeltaSizes,
}

/// Sizes of delta attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeltaSizes {
    /// Heads.
    pub heads: u64,
    /// Elements of a head.
    pub width: u64,
    /// Positions that the convolution sees.
    pub kernel: u64,
}

/// Latent attention, experts, MLPs and norms, as differences to Llama's.
pub(super) static ROW: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("kimi_linear", &["KimiLinearForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 163_840,
        hidden: 2304,
        intermediate: 9216,
        layers: 27,
        heads: 32,
        kv_heads: Some(32),
        max_positions: 1_048_576,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        not_null(s, &["num_experts_per_token", "topk_group", "v_head_dim"])?;
        Biases::of_attention(s)
    },
    windows: Windows::OTHER_KINDS,
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["num_experts", "num_local_experts"], 256),
            chosen: (["num_experts_per_token", "num_experts_per_tok"], 8),
            intermediate: ("moe_intermediate_size", 1024),
            weights: ChosenWeights::GroupedAs(
                GroupKeys {
                    groups: 1,
                    kept: 1,
                    is_normalised: true,
                    scores: GroupScores::Sigmoids,
                },
                ["num_experts", "num_expert_group", "moe_renormalize"],
            ),
            gate_first: false,
            dense: DenseLayers::Kinds(1),
            shared: SharedKeys::Added("num_shared_experts", 1),
            of_dense: OfDense::Usual,
        }),
        latent: Some(&LatentKeys {
            q_rank: None,
            rotation: Some(LatentRotation::Never),
            table: TableWidth::RopeDim,
            ..LatentKeys::DEEPSEEK_V3
        }),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};

/// Token that the class pads with, which has to be one of the vocabulary.
const PADDING: u64 = 163_839;

/// Other names of keys, by which transformers writes none.
const OTHER_NAMES: [&str; 3] = ["n_group", "norm_topk_prob", "n_shared_experts"];

impl KimiLinearConfig {
    pub(super) fn read(s: &Section) -> Result<Self, ModelError> {
        for key in OTHER_NAMES {
            s.only(
                key,
                "no such key: transformers writes another name of it",
                Value::is_null,
            )?;
        }
        let mut text = DecoderConfig::read(s, &ROW)?;
        text.max_positions = s.size_or("model_max_length", text.max_positions, limits::POSITIONS)?;
        // The class names no weights that are tied.
        text.tie_word_embeddings = false;
        if !s.has("pad_token_id") && text.vocab <= PADDING {
            let allowed = format!("more than {PADDING}, which the class pads with unless `pad_token_id` is another");
            return Err(s.wrong("vocab_size", &text.vocab.into(), &allowed));
        }
        let of_checkpoint = s.optional_nested("linear_attn_config", "Kimi Linear")?;
        let is_linear = read_layers(s, text.layers, "linear_attention", |count| match &of_checkpoint {
            Some(table) if table.has("full_attn_layers") && table.has("kda_layers") => listed(table, count),
            _ => Ok((0..count).map(|layer| layer == 0 || layer % 4 != 0).collect()),
        })?;
        let size = |key: &str, older: &str, default: u64, limit: u64| {
            let of_class = s.size_or(key, default, limit)?;
            match &of_checkpoint {
                Some(table) => table.size_or(older, of_class, limit),
                None => Ok(of_class),
            }
        };
        Ok(Self {
            delta: DeltaSizes {
                heads: size("linear_num_heads", "num_heads", 32, limits::HEADS)?,
                width: size("linear_head_dim", "head_dim", 128, limits::HEAD_DIM)?,
                kernel: size("linear_conv_kernel_dim", "short_conv_kernel_size", 4, limits::COUNT)?,
            },
            is_linear,
            text,
        })
    }
}

/// Layers that a checkpoint's file lists by their numbers from 1.
fn listed(table: &Section, count: u64) -> Result<Vec<bool>, ModelError> {
    let read = |key| Ok(table.optional_indices(key, limits::LAYERS)?.unwrap_or_default());
    let (full, linear) = (read("full_attn_layers")?, read("kda_layers")?);
    let of_layer = |layer: u64| match (full.contains(&layer), linear.contains(&layer)) {
        (true, false) => Ok(false),
        (false, true) => Ok(true),
        _ => {
            let given = table.value("kda_layers").cloned().unwrap_or_default();
            let allowed = format!("each of {count} layers, from 1, here or among `full_attn_layers`");
            Err(table.wrong("kda_layers", &given, &allowed))
        }
    };
    (1..=count).map(of_layer).collect()
}
