//! FlexOlmo: OLMo 2 with experts (`transformers/models/flex_olmo`).

pub(crate) use crate::model::decoder::sparse::ExpertLayer;

use crate::model::config::limits;
use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, HeadRule, LlamaBlock,
    LlamaModules, Modules, NormPlacement, OfDense, QueryNorms, Rotation, SharedKeys,
};
use crate::model::facts::ModelType;
use crate::nn::{NormKind, RmsScale};

/// `flex_olmo`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "flex_olmo",
        classes: &["FlexOlmoForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 100_352,
        max_positions: 4096,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Divides,
    biases: |s| {
        let vocab = s.size("vocab_size", 100_352, limits::VOCAB)?;
        if !s.has("pad_token_id") && vocab <= 100_277 {
            return Err(s.wrong(
                "vocab_size",
                &vocab.into(),
                "more than 100277, the default of pad_token_id",
            ));
        }
        Biases::of_attention(s)
    },
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["num_experts", "num_local_experts"], 7),
            chosen: (CHOSEN, 5),
            intermediate: ("intermediate_size", 11_008),
            weights: ChosenWeights::MaybeNormalised(false),
            gate_first: true,
            dense: DenseLayers::Never,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        block: LlamaBlock {
            norm: NormKind::Rms(RmsScale::WeightFirst),
            placement: NormPlacement::After,
            query_norms: QueryNorms::Whole,
            rotation: Rotation::ByF32,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
