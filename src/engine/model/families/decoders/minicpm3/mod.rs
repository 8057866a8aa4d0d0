//! MiniCPM3: latent attention with RoPE as in Llama; embeddings, residuals and last hidden states are scaled
//! (`transformers/models/minicpm3`).

pub(crate) use crate::model::decoder::latent::LatentLayer;

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LatentKeys, LatentRotation, LlamaBlock, LlamaModules, Modules,
    TableWidth,
};
use crate::model::facts::ModelType;

/// `minicpm3`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "minicpm3",
        classes: &["MiniCPM3ForCausalLM"],
    },
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
    modules: Modules::Llama(LlamaModules {
        embed_scale_key: Some(("scale_emb", true)),
        latent: Some(&LatentKeys {
            q_rank: Some(768),
            kv_rank: 256,
            unrotated: 64,
            rotated: 32,
            values: None,
            rotation: Some(LatentRotation::Halves),
            table: TableWidth::HeadDim,
        }),
        block: LlamaBlock {
            scales_stream: true,
            scales_last: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
