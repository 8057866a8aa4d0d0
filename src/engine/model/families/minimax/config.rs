//! Configuration of MiniMax-Text.

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderConfig, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys,
    LlamaModules, Modules, OfDense, SharedKeys, Windows,
};
use crate::model::facts::ModelType;
use crate::model::parts::mixed_layers::read_layers;

/// MiniMax-Text: lightning attention in some layers and Llama's in the others, Mixtral's experts in all.
///
/// Source: `transformers/models/minimax/configuration_minimax.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct MiniMaxConfig {
    /// Attention, experts and norms.
    pub text: DecoderConfig,
    /// For each layer, true if it has lightning attention.
    pub is_linear: Vec<bool>,
    /// Positions that lightning attention takes at once.
    pub block: u64,
}

/// Attention, experts and norms, as differences to Llama's.
pub(super) static ROW: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("minimax", &["MiniMaxForCausalLM"]),
    defaults: DecoderDefaults {
        intermediate: 14_336,
        kv_heads: Some(8),
        max_positions: 131_072,
        ..DecoderDefaults::LLAMA
    },
    biases: |_| Ok(Biases::NONE),
    windows: Windows::OTHER_KINDS,
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["num_local_experts", "num_experts"], 8),
            chosen: (CHOSEN, 2),
            intermediate: ("intermediate_size", 14_336),
            weights: ChosenWeights::NormalisedWide,
            gate_first: true,
            dense: DenseLayers::Never,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};

impl MiniMaxConfig {
    pub(super) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = DecoderConfig::read(s, &ROW)?;
        s.only(
            "sliding_window",
            "null: windows beside lightning attention are not simulated",
            |v| v.is_null(),
        )?;
        let is_linear = read_layers(s, text.layers, "linear_attention", |count| {
            Ok((0..count).map(|layer| layer % 2 == 1).collect())
        })?;
        Ok(Self {
            block: s.size_or("block_size", 256, limits::POSITIONS)?,
            is_linear,
            text,
        })
    }
}
