//! GLM-5: DeepSeek-V3.2's attention, some of whose blocks take the keys that a block before them chose
//! (`transformers/models/glm_moe_dsa`).

pub(crate) use crate::model::decoder::sparse_latent::SparseLatentLayer;

use serde_json::Value;

use super::deepseek_v32::check;
use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderConfig, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, GroupKeys,
    GroupScores, Indexers, LatentKeys, LatentRotation, LlamaModules, Modules, OfDense, OwnSizes, SharedKeys,
    TableWidth, Windows,
};
use crate::model::facts::ModelType;

/// `glm_moe_dsa`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("glm_moe_dsa", &["GlmMoeDsaForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 154_880,
        hidden: 6144,
        intermediate: 12_288,
        layers: 78,
        heads: 64,
        kv_heads: Some(64),
        max_positions: 202_752,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        check(s)?;
        Biases::of_attention(s)
    },
    windows: Windows::OTHER_KINDS,
    modules: Modules::Llama(LlamaModules {
        refuses_flash: true,
        always_masks: true,
        experts: Some(&ExpertKeys {
            experts: (["n_routed_experts", "num_local_experts"], 256),
            chosen: (CHOSEN, 8),
            intermediate: ("moe_intermediate_size", 2048),
            weights: ChosenWeights::Grouped(GroupKeys {
                groups: 1,
                kept: 1,
                is_normalised: true,
                scores: GroupScores::SigmoidsCorrectedInF32,
            }),
            gate_first: false,
            dense: DenseLayers::Kinds(3),
            shared: SharedKeys::Added("n_shared_experts", 1),
            of_dense: OfDense::Usual,
        }),
        latent: Some(&LatentKeys {
            q_rank: Some(2048),
            nope_dim: 192,
            values: Some(256),
            rotation: Some(LatentRotation::Pairs),
            table: TableWidth::RopeDim,
            ..LatentKeys::DEEPSEEK_V3
        }),
        ..LlamaModules::LLAMA
    }),
    own: |s, c| {
        let rope_dim = c.latent.map_or(0, |latent| latent.rope_dim());
        Ok(OwnSizes::Indexers(Indexers {
            rotates_pairs: true,
            takes_choice: Some(takes_choice(s, c)?),
            ..Indexers::read(s, [32, 128, 2048], rope_dim)?
        }))
    },
    ..DecoderFamily::USUAL
};

/// Reads which blocks take the choice of the block before: `indexer_types`, or a pattern, or each one between those that a
/// frequency and an offset name.
fn takes_choice(s: &Section, c: &DecoderConfig) -> Result<Vec<bool>, ModelError> {
    for key in ["indexer_types", "index_topk_pattern"] {
        if s.value(key).is_some() {
            return listed_choices(s, key, c.layers);
        }
    }
    let every = s.optional_count("index_topk_freq", limits::LAYERS)?.unwrap_or(1).max(1);
    let offset = s.optional_count("index_skip_topk_offset", limits::LAYERS)?.unwrap_or(2);
    let takes: Vec<bool> = (0..c.layers)
        .map(|i| (i + 1).saturating_sub(offset) % every != 0)
        .collect();
    match takes.first() {
        Some(true) => {
            let allowed = "an offset of 1 or more, so that the first layer has an indexer";
            Err(s.wrong("index_skip_topk_offset", &offset.into(), allowed))
        }
        _ => Ok(takes),
    }
}

/// Reads which of so many blocks take the choice of the block before from a list of kinds, or from a letter for each.
pub(crate) fn listed_choices(s: &Section, key: &str, layers: u64) -> Result<Vec<bool>, ModelError> {
    let given = s.value(key).unwrap_or(&Value::Null);
    let takes: Option<Vec<bool>> = match (given.as_str(), given.as_array()) {
        (Some(letters), _) if key != "indexer_types" => letters.chars().map(of_letter).collect(),
        (_, Some(kinds)) => kinds.iter().map(of_kind).collect(),
        _ => None,
    };
    let fits = |takes: &Vec<bool>| takes.len() as u64 >= layers && takes.first() == Some(&false);
    takes.filter(fits).map_or_else(
        || {
            let allowed = format!("{layers} entries, each \"full\" or \"shared\", of which the first is \"full\"");
            Err(s.wrong(key, given, &allowed))
        },
        |takes| Ok(takes[..layers as usize].to_vec()),
    )
}

/// Returns true for a kind of block that takes the choice of the block before.
fn of_kind(kind: &Value) -> Option<bool> {
    match kind.as_str()? {
        "full" => Some(false),
        "shared" => Some(true),
        _ => None,
    }
}

/// Returns true for the letter of such a kind.
fn of_letter(letter: char) -> Option<bool> {
    match letter {
        'F' => Some(false),
        'S' => Some(true),
        _ => None,
    }
}
