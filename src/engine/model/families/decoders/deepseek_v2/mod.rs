//! DeepSeek-V2: latent attention with RoPE by complex numbers, and experts (`transformers/models/deepseek_v2`).

pub(crate) use crate::model::decoder::latent::LatentLayer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, HeadRule, LatentKeys,
    LatentRotation, LlamaModules, Modules, OfDense, SharedKeys, not_null,
};
use crate::model::facts::{ModelType, catalogue};

/// `deepseek_v2`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "deepseek_v2",
        classes: &["DeepseekV2ForCausalLM"],
    },
    catalogue: catalogue!["deepseek-ai/DeepSeek-V2-Lite",],
    defaults: DecoderDefaults {
        vocab: 102_400,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Divides,
    biases: |s| {
        let allowed = "a number: transformers 5.17 fails without one";
        s.required("num_experts_per_tok", allowed)?;
        not_null(s, &["topk_method"])?;
        Biases::of_attention_and_mlp(s)
    },
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["n_routed_experts", "num_experts"], 64),
            chosen: (CHOSEN, 6),
            intermediate: ("moe_intermediate_size", 1407),
            weights: ChosenWeights::ByMethod,
            gate_first: false,
            dense: DenseLayers::First(0),
            shared: SharedKeys::Added("n_shared_experts", 2),
            of_dense: OfDense::Usual,
        }),
        latent: Some(&LatentKeys {
            rotation: Some(LatentRotation::Complex),
            ..LatentKeys::DEEPSEEK_V3
        }),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
