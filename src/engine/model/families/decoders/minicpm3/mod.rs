//! MiniCPM3: latent attention turned as in Llama; embeddings, residuals and last hidden states are scaled
//! (`transformers/models/minicpm3`).

pub(crate) use crate::model::decoder::latent::LatentLayer;

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LatentKeys, LatentRotation, LlamaBlock, LlamaModules, Modules,
    SoftCaps, Windows,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;

/// `minicpm3`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "minicpm3",
        classes: &["MiniCPM3ForCausalLM"],
    },
    catalogue: &[],
    defaults: DecoderDefaults {
        vocab: 73_448,
        hidden: 2560,
        intermediate: 6400,
        layers: 62,
        heads: 40,
        kv_heads: Some(40),
        max_positions: 32_768,
        tie: true,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Divides,
    biases: Biases::of_attention_and_mlp,
    windows: Windows::NEVER,
    qk_norm: false,
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
    modules: Modules::Llama(LlamaModules {
        embed_scale_key: Some(("scale_emb", true)),
        latent: Some(&LatentKeys {
            q_rank: Some(768),
            kv_rank: 256,
            unturned: 64,
            turned: 32,
            values: None,
            rotation: Some(LatentRotation::Halves),
        }),
        block: LlamaBlock {
            scales_stream: true,
            scales_last: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Unknown,
};
