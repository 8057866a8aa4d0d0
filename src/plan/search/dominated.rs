//! Rules out setups that another setup of the space dominates, before any simulation.

use super::space::Space;
use vramscope_engine::Setup;
use vramscope_engine::setup::{Attention, Freeze, Optimizer, Precision};

/// Returns true if the space has a setup that learns the same, takes no more memory and is no slower.
///
/// - Eager attention keeps scores and probabilities where the fused kernels keep one row of sums, and launches a kernel
///   for each of its steps.
/// - If bf16 was asked, fp32 weights, gradients and states take twice the memory, and higher-precision matrix products
///   take at least as long. Exception: adapters in fp32 multiply in fp32 beside bf16 weights, but in half precision
///   under autocast.
///
/// `src/engine/tests/monotone` checks both over all families.
pub(super) fn is_dominated(space: &Space, setup: &Setup) -> bool {
    let fused = setup.attn == Attention::Eager && space.attns.contains(&Attention::Sdpa);
    let asked = space.precisions.first();
    let has_adapters = matches!(setup.freeze, Freeze::Lora | Freeze::Qlora);
    let may_be_faster = has_adapters && setup.precision != Precision::Fp32;
    let half = asked == Some(&Precision::Bf16) && setup.precision != Precision::Bf16 && !may_be_faster;
    fused || half
}

/// Returns true if the space has an optimizer with the same update, less memory and less time: fused AdamW has no
/// temporaries, which the other implementations need beside the same moments.
pub(super) fn is_dominated_optimizer(space: &Space, optim: Optimizer) -> bool {
    matches!(optim, Optimizer::Adamw | Optimizer::AdamwLoop) && space.optims.contains(&Optimizer::AdamwFused)
}
