//! What of DeepSpeed is not simulated, refused by name.

use super::super::super::{SimulateError, unshared as why};
use crate::Setup;
use crate::setup::{Offload, Optimizer, Parallel, Precision, Strategy, ZeroGrad};

/// Refuses setups that DeepSpeed's engine is not simulated for.
pub fn refuse(setup: &Setup, parallel: &Parallel) -> Result<(), SimulateError> {
    // Of a trainer the switches `bf16` and `fp16` alone count: the engine casts the model, and nothing runs under autocast.
    let casts = match setup.trainer.is_derived() {
        false => matches!(setup.precision, Precision::Bf16 | Precision::Fp16),
        true => setup.precision != Precision::Fp32,
    };
    if !casts {
        return Err(why::deepspeed_precision());
    }
    // Those that were compared with recordings: each gets a flat part of the parameters.
    if !matches!(
        setup.optim,
        Optimizer::Adamw
            | Optimizer::AdamwFused
            | Optimizer::AdamwLoop
            | Optimizer::Sgd
            | Optimizer::Sgdm
            | Optimizer::Adafactor
            | Optimizer::Adamw8bit
            | Optimizer::PagedAdamw8bit
    ) {
        return Err(why::deepspeed_optim());
    }
    if setup.ema {
        return Err(why::deepspeed_ema());
    }
    if setup.zero_grad != ZeroGrad::ToNone {
        return Err(why::deepspeed_zero_grad());
    }
    if parallel.offload == Offload::OptimizerAndParameters && parallel.strategy != Strategy::Deepspeed3 {
        return Err(why::deepspeed_parameters());
    }
    if parallel.offload.is_any() && parallel.strategy == Strategy::Deepspeed0 {
        return Err(why::deepspeed_stage0());
    }
    let size = parallel.zero.reduce_bucket_size;
    if !(1..=MOST_BUCKET).contains(&size) {
        return Err(why::deepspeed_bucket(&MOST_BUCKET, &size));
    }
    if !parallel.zero.contiguous_gradients && parallel.strategy != Strategy::Deepspeed3 {
        return Err(why::deepspeed_contiguous());
    }
    Ok(())
}

/// Most elements of a bucket.
const MOST_BUCKET: u64 = 1 << 40;
