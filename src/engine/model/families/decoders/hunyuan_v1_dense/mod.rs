//! HunYuan dense: norms of queries and keys after RoPE (`transformers/models/hunyuan_v1_dense`).

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, Modules, QueryNorms};
use crate::model::facts::ModelType;

/// `hunyuan_v1_dense`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "hunyuan_v1_dense",
        classes: &["HunYuanDenseV1ForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 290_943,
        ..DecoderDefaults::LLAMA
    },
    biases: checked_biases,
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            query_norms: QueryNorms::RotatedHeads(["query_layernorm", "key_layernorm"]),
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};

/// Reads the biases, and checks what HunYuan's attention and positions take.
pub(crate) fn checked_biases(s: &Section) -> Result<Biases, ModelError> {
    s.required("head_dim", "a number: transformers 5.17 fails without one")?;
    if let Some(rope) = s
        .optional_nested("rope_scaling", "rotary embedding")?
        .or(s.optional_nested("rope_parameters", "rotary embedding")?)
    {
        rope.only("alpha", "absent: HunYuan's own scaling is not simulated", |_| false)?;
    }
    Biases::of_attention(s)
}
