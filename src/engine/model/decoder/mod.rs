//! Decoders like Llama's: their configuration, the modules that they share, and those of Gemma's kind.

mod biases;
pub(crate) mod block;
pub(crate) mod causal_lm;
mod config;
mod defaults;
mod expert_keys;
pub(crate) mod experts;
mod family;
mod forms;
pub(crate) mod gemma;
pub(crate) mod head;
mod indexer;
pub(crate) mod latent;
mod latent_config;
pub(crate) mod layer;
pub(crate) mod mlp;
mod own_sizes;
pub(crate) mod rope_tables;
mod rotaries;
pub(crate) mod router;
pub mod search;
pub(crate) mod sparse;
pub(crate) mod sparse_latent;
pub(crate) mod stack;
pub(crate) mod streams;
pub(crate) mod text;
mod windows;

pub(crate) use biases::Biases;
pub use config::DecoderConfig;
pub(crate) use defaults::DecoderDefaults;
pub(crate) use expert_keys::{
    CHOSEN, ChosenWeights, DenseLayers, ExpertKeys, GroupKeys, GroupScores, OfDense, SharedKeys, SigmoidForm,
};
pub(crate) use experts::{ExpertsConfig, each_layer_has_a_kind, not_null};
pub use family::DecoderFamily;
pub(crate) use family::{GemmaModules, HeadRule, LlamaModules, Modules, SoftCaps};
pub(crate) use forms::{LateScale, LlamaBlock, MlpKind, NormPlacement, QueryNorms, Rotation};
pub(crate) use latent_config::{LatentKeys, LatentRotation, TableWidth};
pub(crate) use own_sizes::{Indexers, OwnSizes};
pub(crate) use rope_tables::KindShares;
pub(crate) use windows::{WindowLength, Windows, slides_by_layer, slides_with_a_number, some_slide};
