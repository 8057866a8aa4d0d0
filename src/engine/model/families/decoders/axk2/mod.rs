//! A.X-K2: DeepSeek-V3.2 with gates of attention and of norms (`transformers/models/axk2`).

mod block;

pub(crate) use block::Layer;

use super::deepseek_v32::check_sparse;
use crate::model::config::limits;
use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, Indexers, LatentKeys,
    LatentRotation, LlamaModules, Modules, OfDense, OwnSizes, SharedKeys, TableWidth, Windows,
};
use crate::model::facts::ModelType;

/// `axk2`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("axk2", &["AXK2ForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 163_840,
        hidden: 2048,
        intermediate: 5120,
        layers: 48,
        heads: 32,
        kv_heads: Some(32),
        max_positions: 131_072,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        check_sparse(s)?;
        s.only("moe_layer_freq", "1: other layers than those of mlp_layer_types", |v| {
            v == 1
        })?;
        Biases::of_attention(s)
    },
    windows: Windows::OTHER_KINDS,
    modules: Modules::Llama(LlamaModules {
        refuses_flash: true,
        always_masks: true,
        experts: Some(&ExpertKeys {
            experts: (["n_routed_experts", "num_local_experts"], 128),
            chosen: (CHOSEN, 8),
            intermediate: ("moe_intermediate_size", 512),
            weights: ChosenWeights::MaybeGrouped,
            gate_first: false,
            dense: DenseLayers::Kinds(1),
            shared: SharedKeys::Added("n_shared_experts", 1),
            of_dense: OfDense::Usual,
        }),
        latent: Some(&LatentKeys {
            q_rank: Some(384),
            kv_rank: 128,
            unrotated: 64,
            rotated: 32,
            values: Some(64),
            rotation: Some(LatentRotation::Pairs),
            table: TableWidth::Rotated,
        }),
        ..LlamaModules::LLAMA
    }),
    own: |s, c| {
        let rotated = c.latent.map_or(0, |latent| latent.rotated());
        let indexers = Indexers::read(s, [16, 128, 2048], rotated)?;
        Ok(OwnSizes::GatedNorms(
            indexers,
            s.size_or("gated_norm_rank", 16, limits::WIDTH)?,
        ))
    },
    ..DecoderFamily::USUAL
};
