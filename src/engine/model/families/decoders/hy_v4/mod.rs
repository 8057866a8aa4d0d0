//! HY-4: GLM-5's attention with gates and sinks, and streams of the residual that blocks mix (`transformers/models/hy_v4`).

mod block;

pub(crate) use block::Layer;

use super::deepseek_v32::check;
use super::glm_moe_dsa::listed_choices;
use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderConfig, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, GroupKeys,
    GroupScores, Indexers, LatentKeys, LatentRotation, LlamaModules, Modules, OfDense, OwnSizes, SharedKeys,
    TableWidth, Windows, each_layer_has_a_kind,
};
use crate::model::facts::ModelType;

/// `hy_v4`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("hy_v4", &["HYV4ForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 120_832,
        hidden: 2816,
        intermediate: 6912,
        layers: 34,
        heads: 32,
        max_positions: 262_144,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        check(s)?;
        each_layer_has_a_kind(s)?;
        let vocab = s.size("vocab_size", 120_832, limits::VOCAB)?;
        if !s.has("pad_token_id") && vocab <= 120_002 {
            let allowed = "more than 120002, the default of pad_token_id";
            return Err(s.wrong("vocab_size", &vocab.into(), allowed));
        }
        Biases::of_attention(s)
    },
    windows: Windows::OTHER_KINDS,
    modules: Modules::Llama(LlamaModules {
        is_eager: true,
        always_masks: true,
        experts: Some(&ExpertKeys {
            experts: (["n_routed_experts", "num_local_experts"], 256),
            chosen: (CHOSEN, 8),
            intermediate: ("moe_intermediate_size", 768),
            weights: ChosenWeights::Grouped(GroupKeys {
                groups: 1,
                kept: 1,
                is_normalised: true,
                scores: GroupScores::SigmoidsCorrectedInF32,
            }),
            gate_first: false,
            dense: DenseLayers::KindsOr(1),
            shared: SharedKeys::Added("n_shared_experts", 1),
            of_dense: OfDense::Usual,
        }),
        latent: Some(&LatentKeys {
            unrotated: 192,
            values: Some(256),
            rotation: Some(LatentRotation::Halves),
            table: TableWidth::Rotated,
            ..LatentKeys::DEEPSEEK_V3
        }),
        ..LlamaModules::LLAMA
    }),
    own: |s, c| {
        let rotated = c.latent.map_or(0, |latent| latent.rotated());
        let indexers = Indexers {
            rotates_last: true,
            takes_choice: Some(takes_choice(s, c)?),
            ..Indexers::read(s, [16, 128, 2048], rotated)?
        };
        Ok(OwnSizes::Streams(indexers, s.size_or("hc_mult", 4, limits::HEADS)?))
    },
    ..DecoderFamily::USUAL
};

/// Reads which blocks take the choice of the block before: unless `indexer_types` says so, all but the first and each fourth
/// after it.
fn takes_choice(s: &Section, c: &DecoderConfig) -> Result<Vec<bool>, ModelError> {
    match s.value("indexer_types") {
        Some(_) => listed_choices(s, "indexer_types", c.layers),
        None => Ok((0..c.layers).map(|i| i != 0 && (i - 1) % 4 != 0).collect()),
    }
}
