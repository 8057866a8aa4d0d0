//! LongCat-Flash: two rounds of latent attention and an MLP in each block, beside both experts of which some do nothing
//! (`transformers/models/longcat_flash`).

mod block;
mod experts;

pub(crate) use block::Layer;

use crate::model::config::limits;
use crate::model::decoder::{
    Biases, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, LatentKeys, LatentRotation,
    LlamaModules, Modules, OfDense, OwnSizes, SharedKeys, Windows, not_null,
};
use crate::model::facts::ModelType;

/// `longcat_flash`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("longcat_flash", &["LongcatFlashForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 131_072,
        hidden: 6144,
        layers: 28,
        heads: 64,
        max_positions: 131_072,
        theta: 1e7,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        not_null(s, &["q_lora_rank", "kv_lora_rank", "v_head_dim", "moe_topk"])?;
        s.only("moe_topk", "2 or more: transformers 5.17 fails with one expert", |n| {
            n != 1
        })?;
        s.only("router_bias", "false: a router with a bias is not simulated", |v| {
            v == false
        })?;
        if !s.has("head_dim") {
            s.only("qk_rope_head_dim", "64, the default of head_dim", |n| n == 64)?;
        }
        Biases::of_attention(s)
    },
    windows: Windows::OTHER_KINDS,
    modules: Modules::Llama(LlamaModules {
        layers_key: "num_layers",
        experts: Some(&ExpertKeys {
            experts: (["n_routed_experts", "num_local_experts"], 512),
            chosen: (["moe_topk", "num_experts_per_tok"], 12),
            intermediate: ("expert_ffn_hidden_size", 2048),
            weights: ChosenWeights::OfBlock,
            gate_first: false,
            dense: DenseLayers::Never,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        latent: Some(&LatentKeys {
            rotation: Some(LatentRotation::Pairs),
            ..LatentKeys::DEEPSEEK_V3
        }),
        ..LlamaModules::LLAMA
    }),
    own: |s, c| {
        if let Some(given) = s.optional_size("qk_head_dim", limits::HEAD_DIM)? {
            let both = ("qk_nope_head_dim + qk_rope_head_dim", c.head_dim);
            s.equal(("qk_head_dim", given), both)?;
        }
        let keys = ["ffn_hidden_size", "intermediate_size"];
        Ok(OwnSizes::Shortcut {
            zero_experts: s.optional_count("zero_expert_num", limits::WIDTH)?.unwrap_or(256),
            intermediate: s.size_of_either(keys, 12_288, limits::WIDTH * 4)?,
        })
    },
    ..DecoderFamily::USUAL
};
