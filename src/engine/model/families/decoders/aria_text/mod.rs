//! Aria's language model: Llama with experts that run one after the other (`transformers/models/aria`).

mod experts;

use crate::model::decoder::layer::Layer as LlamaLayer;
use crate::model::decoder::{
    Biases, ChosenWeights, DecoderConfig, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, LlamaModules,
    Modules, OfDense, SharedKeys, not_null,
};
use crate::model::facts::ModelType;
use crate::nn::Builder;
use experts::SequentialMoe;

/// `aria_text`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "aria_text",
        classes: &["AriaTextForCausalLM"],
    },
    defaults: DecoderDefaults {
        intermediate: 4096,
        max_positions: 2048,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        not_null(s, &["moe_num_experts", "moe_topk", "moe_num_shared_experts"])?;
        Biases::of_attention_and_mlp(s)
    },
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["moe_num_experts"; 2], 8),
            chosen: (["moe_topk"; 2], 2),
            intermediate: ("intermediate_size", 4096),
            weights: ChosenWeights::OfBlock,
            gate_first: true,
            dense: DenseLayers::Never,
            shared: SharedKeys::Added("moe_num_shared_experts", 2),
            of_dense: OfDense::Usual,
        }),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};

/// Makes `AriaTextDecoderLayer`: Llama's block, with these experts.
pub(crate) struct Layer;

impl Layer {
    #[expect(clippy::new_ret_no_self, reason = "the registry makes every block by `new`")]
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> LlamaLayer {
        LlamaLayer::with_mlp(b, c, index, &|| Box::new(SequentialMoe::new(b, c)))
    }
}
