//! Nemotron: layer norms, an MLP without a gate, and positions in half of each head (`transformers/models/nemotron`).

use crate::model::config::Activation;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, MlpKind, Modules, Rotation,
};
use crate::model::facts::ModelType;
use crate::nn::NormKind;

/// `nemotron`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "nemotron",
        classes: &["NemotronForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 256_000,
        hidden: 6144,
        intermediate: 24_576,
        heads: 48,
        max_positions: 4096,
        activation: Activation::Relu2,
        partial_rotary: 0.5,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        s.required("num_key_value_heads", "a number: transformers 5.17 fails without one")?;
        Biases::of_attention_and_mlp(s)
    },
    modules: Modules::Llama(LlamaModules {
        partial_rotary: true,
        block: LlamaBlock {
            norm: NormKind::ShiftedLayer,
            mlp: MlpKind::Plain(["up_proj", "down_proj"]),
            rotation: Rotation::Part,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
