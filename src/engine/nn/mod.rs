//! Modules: parameters and the operations that they run, as in `torch.nn` and transformers.
//!
//! A forward holds its tensors in variables that live exactly as long as Python's do, since lifetimes decide the peaks.
//! A value that Python keeps until a function returns is kept here too (`let _weights = …`), and a reassignment here
//! frees what a reassignment there frees.

mod activation;
mod attention;
mod batch_norm;
mod builder;
mod cache;
mod complex_rotary;
mod delta;
mod embedding;
mod experts;
mod gate;
mod kimi_delta;
mod liger;
mod linear;
mod lora;
mod loss;
mod mask;
mod mask_rule;
mod mrope;
mod multihead;
mod nf4;
mod norm;
mod numbered;
mod rope;
mod token_scores;
mod wrapped;
mod xielu;

pub use activation::{Activation, activate};
pub use attention::{
    AttentionCall, SinkCall, attention, capped_attention, shifted_attention, sink_attention, sink_scaled_attention,
    soft_cap,
};
pub use batch_norm::BatchNorm;
pub use builder::{Attached, Builder, ByName, Saved, Trained};
pub use cache::KvCache;
pub use complex_rotary::{ComplexRotary, apply_complex_rotary, apply_complex_rotary_in_turn};
pub use delta::{DeltaCall, chunk_gated_delta_rule};
pub use embedding::{Embedding, ScaledEmbedding};
pub use experts::{ExpertSizes, Experts, clamped_gate};
pub use gate::gated;
pub use kimi_delta::chunk_kimi_delta_attention;
pub use liger::{LigerPatches, Norms, Replaced};
pub use linear::{Conv1d, Linear};
pub use lora::Adapters;
pub use loss::{
    aligned_lm_loss, cast_and_shifted_lm_loss, causal_lm_loss, classification_loss, fused_causal_lm_loss,
    shifted_lm_loss, unshifted_lm_loss,
};
pub use mask::{
    Pattern, bidirectional_mask, causal_mask, counted_positions, ids, made_mask, padding_mask, patch_mask,
    pattern_mask, position_ids, recurrent_mask, text_mask,
};
pub use mrope::{AXES, MropeLayout};
pub use multihead::MultiheadAttention;
pub use nf4::quantised_once;
pub use norm::{GatedRmsNorm, LayerNorm, Norm, NormKind, PowerRmsNorm, RmsNorm, RmsScale, T5LayerNorm};
pub use numbered::Numbered;
pub use rope::{
    Frequencies, Rotary, Waves, apply_partial_rotary, apply_partial_rotary_in_turn, apply_rotary, apply_rotary_back,
    apply_rotary_to_pairs, apply_rotary_to_part, inverse_frequencies, inverse_frequencies_again, rotate_half,
};
pub use token_scores::{FusedOutput, TokenScores};
pub use wrapped::{Active, Wrapped};
pub use xielu::Xielu;
