//! HunYuan dense: norms of queries and keys once they are turned (`transformers/models/hunyuan_v1_dense`).

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, Modules, QueryNorms, SoftCaps, Windows,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;

/// `hunyuan_v1_dense`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "hunyuan_v1_dense",
        classes: &["HunYuanDenseV1ForCausalLM"],
    },
    catalogue: &[],
    defaults: DecoderDefaults {
        vocab: 290_943,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Free,
    biases: checked_biases,
    windows: Windows::NEVER,
    qk_norm: true,
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            query_norms: QueryNorms::TurnedHeads(["query_layernorm", "key_layernorm"]),
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Unknown,
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
