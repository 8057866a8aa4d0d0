//! Distance of a setup from the asked one.

use crate::optimizers;
use vramscope_engine::Setup;
use vramscope_engine::setup::{Freeze, Parallel, Precision};

/// Distance from the asked setup: 0 if the setup computes the same update up to rounding.
///
/// The number is a ranking, not a measurement: each setting counts by how much it changes what is learned. Settings
/// that only change time and memory (micro-batch, checkpointing, attention, the fused loss, sharding) count nothing;
/// changed samples count separately ([`Input::distance`](super::Input)).
pub fn distance(asked: &Setup, setup: &Setup) -> u32 {
    of_precision(asked.precision, setup.precision)
        + optimizers::distance(asked.optim, setup.optim)
        + learned_less(setup.freeze).saturating_sub(learned_less(asked.freeze))
}

/// Distance due to parallelism: FSDP2's mixed precision computes in bf16 even if fp32 was asked.
pub(super) fn of_parallel(parallel: Option<&Parallel>, setup: &Setup) -> u32 {
    u32::from(parallel.is_some_and(|parallel| parallel.mp) && setup.precision == Precision::Fp32)
}

fn of_precision(asked: Precision, now: Precision) -> u32 {
    let exact = |precision| match precision {
        Precision::Fp32 => 0,
        Precision::AmpBf16 | Precision::AmpFp16 => 1,
        Precision::Bf16 | Precision::Bf16Amp | Precision::Fp16 | Precision::Fp16Amp => 2,
    };
    if asked == now {
        0
    } else {
        u32::saturating_sub(exact(now), exact(asked))
    }
}

/// Penalty for training fewer parameters than all of them.
pub(super) const fn learned_less(freeze: Freeze) -> u32 {
    match freeze {
        // Most of a model's parameters are the language model's; the fewest are the connector's.
        Freeze::Parts(frozen) => match (frozen.vision, frozen.language) {
            (vision, false) => vision as u32 * 2 + frozen.connector as u32,
            (false, true) => 6 + frozen.connector as u32,
            (true, true) => 8,
        },
        Freeze::Lora => 4,
        Freeze::Qlora => 5,
    }
}
