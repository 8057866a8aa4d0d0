//! What of DeepSpeed is not simulated, refused by name.

use super::super::super::{SimulateError, unshared as why};
use crate::Setup;
use crate::setup::{Offload, Optimizer, Parallel, Strategy, ZeroGrad};

/// Refuses setups that DeepSpeed's engine is not simulated for.
pub fn refuse(setup: &Setup, parallel: &Parallel) -> Result<(), SimulateError> {
    // Of a trainer the switches `bf16` and `fp16` alone count: the engine casts the model, and nothing runs under autocast.
    if !setup.trainer.is_derived() && setup.precision.autocast().is_some() {
        return Err(why::deepspeed_autocast());
    }
    if setup.optim == Optimizer::Muon {
        return Err(why::flat_muon());
    }
    if let Optimizer::Adagrad | Optimizer::AdagradLoop = setup.optim {
        return Err(why::deepspeed_adagrad());
    }
    if setup.ema && parallel.strategy == Strategy::Deepspeed3 {
        return Err(why::deepspeed_ema());
    }
    if setup.trains_saved_modules() && parallel.strategy == Strategy::Deepspeed3 {
        return Err(why::saved_sharded());
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
    Ok(())
}

/// Most elements of a bucket.
const MOST_BUCKET: u64 = 1 << 40;
