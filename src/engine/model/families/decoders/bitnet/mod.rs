//! BitNet: Llama with norms before the last projections of attention and of the MLP (`transformers/models/bitnet`).

use crate::model::config::Activation;
use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, Modules};
use crate::model::facts::ModelType;

/// `bitnet`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "bitnet",
        classes: &["BitNetForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 128_256,
        hidden: 2560,
        intermediate: 6912,
        layers: 30,
        heads: 20,
        kv_heads: Some(5),
        activation: Activation::Relu2,
        theta: 5e5,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Fills,
    biases: Biases::of_attention,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            sub_norms: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
