//! nanochat: RMS norms without parameters, one of them before the blocks (`transformers/models/nanochat`).

use crate::model::config::Activation;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, MlpKind, Modules, QueryNorms, Rotation,
    SoftCaps,
};
use crate::model::facts::ModelType;
use crate::nn::NormKind;

/// `nanochat`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "nanochat",
        classes: &["NanoChatForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 50_304,
        hidden: 768,
        intermediate: 8192,
        layers: 12,
        heads: 6,
        activation: Activation::Relu2,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Floors,
    biases: Biases::of_attention,
    qk_norm: true,
    soft_caps: SoftCaps::Default,
    modules: Modules::Llama(LlamaModules {
        norm_first: true,
        block: LlamaBlock {
            norm: NormKind::WideRms,
            query_norms: QueryNorms::RotatedHeads(["q_norm", "k_norm"]),
            rotation: Rotation::Back,
            mlp: MlpKind::Plain(["fc1", "fc2"]),
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
