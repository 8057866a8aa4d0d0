//! Setups that another one of the space beats in everything, known before anything is simulated.

use super::space::Space;
use vramscope_engine::Setup;
use vramscope_engine::setup::{Attention, Freeze, Optimizer, Precision};

/// Whether the space has a setup that learns the same, takes no more memory and is no slower.
///
/// - Eager attention keeps scores and probabilities where the fused kernels keep a row of sums, and runs a kernel for
///   each step of it.
/// - Where bf16 was asked, fp32 weights, gradients and states take twice as much, and more precise products as long or
///   longer; but adapters in fp32 multiply in fp32 beside weights in bf16, and in half precision under autocast.
///
/// `tests/monotone` holds both over all families.
pub(super) fn is_dominated(space: &Space, setup: &Setup) -> bool {
    let fused = setup.attn == Attention::Eager && space.attns.contains(&Attention::Sdpa);
    let asked = space.precisions.first();
    let has_adapters = matches!(setup.freeze, Freeze::Lora | Freeze::Qlora);
    let may_be_faster = has_adapters && setup.precision != Precision::Fp32;
    let half = asked == Some(&Precision::Bf16) && setup.precision != Precision::Bf16 && !may_be_faster;
    fused || half
}

/// Whether the space has an optimizer that makes the same update, with less memory and in less time: the fused AdamW
/// keeps no temporaries, which the other forms hold beside the same moments.
pub(super) fn is_dominated_optimizer(space: &Space, optim: Optimizer) -> bool {
    matches!(optim, Optimizer::Adamw | Optimizer::AdamwLoop) && space.optims.contains(&Optimizer::AdamwFused)
}
