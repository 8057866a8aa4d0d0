//! Granite MoE with sliding windows and sinks (`transformers/models/granitemoe_swa`).

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderConfig, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, HeadRule,
    LlamaModules, Modules, OfDense, SharedKeys, not_null,
};
use crate::model::facts::ModelType;
use crate::model::families::decoders::granite_swa::{MODULES, SinkAttention, WINDOWS, one_base};
use crate::model::families::decoders::granitemoe;
use crate::nn::Builder;

/// Makes a block: Granite MoE's, with another attention.
pub(crate) struct Layer;

impl Layer {
    #[expect(clippy::new_ret_no_self, reason = "the registry makes every block by `new`")]
    pub fn new(b: &Builder, c: &DecoderConfig, _: usize) -> granitemoe::Layer {
        granitemoe::Layer::with_attention(b, c, &|| Box::new(SinkAttention::new(b, c)))
    }
}

/// `granitemoe_swa`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("granitemoe_swa", &["GraniteMoeSWAForCausalLM"]),
    defaults: DecoderDefaults::LLAMA,
    heads: HeadRule::Floors,
    biases: |s| {
        one_base(s)?;
        not_null(s, &["num_local_experts", "num_experts_per_tok"])?;
        Biases::of_attention(s)
    },
    windows: WINDOWS,
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["num_local_experts"; 2], 8),
            chosen: (CHOSEN, 2),
            intermediate: ("intermediate_size", 11_008),
            weights: ChosenWeights::OfChosenInF32,
            gate_first: true,
            dense: DenseLayers::Never,
            shared: SharedKeys::Outside("shared_intermediate_size"),
            of_dense: OfDense::Usual,
        }),
        ..MODULES
    }),
    ..DecoderFamily::USUAL
};
