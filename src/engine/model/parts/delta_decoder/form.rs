//! Families of decoders with gated DeltaNet.

use std::fmt;

use crate::model::decoder::{CHOSEN, ChosenWeights, DenseLayers, ExpertKeys, OfDense, SharedKeys};

/// A family of decoders with gated DeltaNet: defaults of its configuration class, and what its forward has of its own.
pub struct DeltaForm {
    pub(crate) name: &'static str,
    pub(super) vocab: u64,
    pub(super) hidden: u64,
    pub(super) layers: u64,
    pub(super) kv_heads: u64,
    /// Width inside the MLP; `None` for a family without one.
    pub(super) intermediate: Option<u64>,
    /// Experts in place of the MLP.
    pub(super) experts: Option<&'static ExpertKeys>,
    /// True if positions are those of time, height and width, as those of a model with images.
    pub(super) multimodal: bool,
    /// True if gated DeltaNet's inputs come from two projections, which hold those of each key head together.
    pub(super) fused: bool,
}

/// Qwen3.5.
pub(crate) static QWEN3_5: DeltaForm = DeltaForm {
    name: "qwen3_5",
    vocab: 248_320,
    hidden: 4096,
    layers: 32,
    kv_heads: 4,
    intermediate: Some(12_288),
    experts: None,
    multimodal: true,
    fused: false,
};

/// Qwen3.5-MoE.
pub(crate) static QWEN3_5_MOE: DeltaForm = DeltaForm {
    name: "qwen3_5_moe",
    vocab: 248_320,
    hidden: 2048,
    layers: 40,
    kv_heads: 2,
    intermediate: None,
    experts: Some(&ExpertKeys {
        experts: (["num_experts"; 2], 256),
        chosen: (CHOSEN, 8),
        intermediate: ("moe_intermediate_size", 512),
        weights: ChosenWeights::Normalised,
        gate_first: true,
        dense: DenseLayers::Never,
        shared: SharedKeys::Gated("shared_expert_intermediate_size", 512),
        of_dense: OfDense::Usual,
    }),
    multimodal: true,
    fused: false,
};

/// Qwen3-Next.
pub(crate) static QWEN3_NEXT: DeltaForm = DeltaForm {
    name: "qwen3_next",
    vocab: 151_936,
    hidden: 2048,
    layers: 48,
    kv_heads: 2,
    intermediate: Some(5632),
    experts: Some(&ExpertKeys {
        experts: (["num_experts"; 2], 512),
        chosen: (CHOSEN, 10),
        intermediate: ("moe_intermediate_size", 512),
        weights: ChosenWeights::MaybeNormalised(true),
        gate_first: true,
        dense: DenseLayers::Listed,
        shared: SharedKeys::Gated("shared_expert_intermediate_size", 512),
        of_dense: OfDense::Usual,
    }),
    multimodal: false,
    fused: true,
};

impl PartialEq for DeltaForm {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for DeltaForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
