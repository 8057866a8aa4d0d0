//! Emu3's language model alone, which `Emu3ForCausalLM` makes of `text_config`: Llama with dropout of what each part adds
//! to the residual stream (`transformers/models/emu3`).

use crate::model::config::{Activation, limits};
use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, Modules};
use crate::model::facts::ModelType;

/// `emu3`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "emu3",
        classes: &["Emu3ForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 184_622,
        intermediate: 14_336,
        kv_heads: Some(8),
        max_positions: 9216,
        activation: Activation::Silu,
        theta: 1e6,
        attention_dropout: 0.1,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        let vocab = s.size("vocab_size", 184_622, limits::VOCAB)?;
        if !s.has("pad_token_id") && vocab <= 151_643 {
            let allowed = "more than 151643, the default of pad_token_id";
            return Err(s.wrong("vocab_size", &vocab.into(), allowed));
        }
        Biases::of_attention_and_mlp(s)
    },
    residual_dropout: Some(("attention_dropout", 0.1)),
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            keeps_undropped: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
