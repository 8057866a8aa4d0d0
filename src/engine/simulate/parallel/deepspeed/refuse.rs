//! What of DeepSpeed is not simulated, refused by name.

use super::super::super::SimulateError;
use crate::Setup;
use crate::setup::{Freeze, Offload, Optimizer, Parallel, Precision, Strategy, ZeroGrad};

/// Refuses setups that DeepSpeed's engine is not simulated for.
pub fn refuse(setup: &Setup, parallel: &Parallel) -> Result<(), SimulateError> {
    let refuse = |why: &str| Err(SimulateError::Parallel(why.to_owned()));
    if setup.precision != Precision::Bf16 {
        return refuse("DeepSpeed is simulated with `bf16: enabled` and weights in bf16; set `precision` to bf16");
    }
    if !matches!(
        setup.optim,
        Optimizer::Adamw | Optimizer::AdamwFused | Optimizer::AdamwLoop | Optimizer::Sgd | Optimizer::Sgdm
    ) {
        return refuse("DeepSpeed is simulated for `optim` adamw, adamw_fused, adamw_loop, sgd and sgdm");
    }
    if setup.freeze == Freeze::Qlora {
        return refuse("DeepSpeed is simulated without weights in 4 bits; set `freeze` to lora or none");
    }
    if setup.ema || setup.zero_grad != ZeroGrad::ToNone {
        return refuse("DeepSpeed is simulated without `ema`, and with `zero_grad` to_none");
    }
    if parallel.offload == Offload::OptimizerAndParameters && parallel.strategy != Strategy::Deepspeed3 {
        return refuse("parameters are offloaded by stage 3; set `offload` to \"optimizer\"");
    }
    if parallel.offload.is_any() && parallel.strategy == Strategy::Deepspeed0 {
        return refuse("stage 0 offloads nothing; set `strategy` to deepspeed1 or deepspeed2, or leave `offload` out");
    }
    let size = parallel.zero.reduce_bucket_size;
    if !(1..=MOST_BUCKET).contains(&size) {
        return Err(SimulateError::Parallel(format!(
            "`zero.reduce_bucket_size` is {size}; it must be between 1 and {MOST_BUCKET}"
        )));
    }
    if !parallel.zero.contiguous_gradients && parallel.strategy != Strategy::Deepspeed3 {
        return refuse("`zero.contiguous_gradients` false is not simulated; leave it out");
    }
    Ok(())
}

/// Most elements of a bucket.
const MOST_BUCKET: u64 = 1 << 40;
