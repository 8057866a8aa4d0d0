//! Simulates a training step on one of several GPUs: by rewriting the recorded step of one GPU for DDP, ZeRO-1 and
//! FSDP2, by recording a part of the model for tensor and pipeline parallelism, and by recording the step that DeepSpeed's
//! engine runs.
//!
//! Forward and backward of a rank are those of a single GPU. A strategy adds memory between their operations (buckets,
//! gathered parameters, reduced gradients) and removes whole tensors (states of another rank's parameters, all but a
//! shard). So the recording of one GPU is rewritten, and replayed through the same allocator. Sources:
//! `torch/nn/parallel/distributed.py`, `torch/csrc/distributed/c10d/reducer.cpp`,
//! `torch/distributed/optim/zero_redundancy_optimizer.py` and `torch/distributed/fsdp/_fully_shard/` of PyTorch 2.11.
//!
//! NCCL's own buffers are outside the allocator and are not counted here.

mod ddp;
mod deepspeed;
mod fsdp;
mod pipeline;
mod rewrite;
mod tensor;
pub mod units;
mod zero;

pub use pipeline::{distinct as distinct_stages, stages as pipeline_stages};
pub use rewrite::shard;
pub use tensor::parts as tensor_parts;
pub use zero::own;

use super::steps::{Notes, Recording, Share, record_shared};
use super::{SimulateError, check, played};
use crate::setup::{Offload, Optimizer, Parallel, Precision, Strategy, TrainerKind, Zero};
use crate::tape::Gpu;
use crate::{Model, Report, Setup};

/// Simulates three training steps on the first of several GPUs.
///
/// # Errors
/// Returns the errors of [`simulate_on`](super::simulate_on), or an error if the strategy is not simulated for the
/// setup.
pub fn simulate_parallel(model: &Model, setup: &Setup, parallel: &Parallel, gpu: Gpu) -> Result<Report, SimulateError> {
    played(model, setup, record_parallel(model, setup, parallel, gpu)?)
}

/// Records the run of the first of several GPUs.
///
/// # Errors
/// Returns the errors of [`simulate_parallel`].
pub fn record_parallel(
    model: &Model,
    setup: &Setup,
    parallel: &Parallel,
    gpu: Gpu,
) -> Result<Recording, SimulateError> {
    record_parallel_notes(model, setup, parallel, gpu, Notes::default())
}

/// Records the run of the first of several GPUs, with the details that `notes` asks for.
///
/// # Errors
/// Returns the errors of [`simulate_parallel`].
pub fn record_parallel_notes(
    model: &Model,
    setup: &Setup,
    parallel: &Parallel,
    gpu: Gpu,
    notes: Notes,
) -> Result<Recording, SimulateError> {
    check::check(model, setup)?;
    let base = base(model, setup, parallel)?;
    if parallel.strategy.is_deepspeeds() {
        return deepspeed::record(model, (&base, parallel), gpu);
    }
    let recording = record_named(model, &base, (parallel, gpu), notes)?;
    Ok(of_one(recording, setup, parallel))
}

/// Rewrites a recorded step of a single GPU, as [`work_of_one`] records it, for a strategy.
pub(super) fn of_one(recording: Recording, setup: &Setup, parallel: &Parallel) -> Recording {
    match parallel.strategy {
        Strategy::Ddp => ddp::rewrite(recording, parallel, false),
        Strategy::DdpView => ddp::rewrite(recording, parallel, true),
        Strategy::Zero1 => zero::rewrite(ddp::rewrite(recording, parallel, true), parallel),
        Strategy::Fsdp | Strategy::FsdpNoReshard => fsdp::rewrite(recording, setup.precision, parallel),
        // Recorded in this form: each operation is that of one GPU.
        Strategy::Tensor
        | Strategy::Pipeline
        | Strategy::PipelineGpipe
        | Strategy::Deepspeed0
        | Strategy::Deepspeed1
        | Strategy::Deepspeed2
        | Strategy::Deepspeed3 => recording,
    }
}

/// Records kernels and host ops in a step of a single GPU as one of several would run it, without those that the
/// strategy adds.
///
/// # Errors
/// Returns the errors of [`simulate_parallel`].
pub fn work_of_one(model: &Model, setup: &Setup, parallel: &Parallel, gpu: Gpu) -> Result<Recording, SimulateError> {
    check::check(model, setup)?;
    let notes = Notes {
        work: true,
        sums: false,
    };
    let base = base(model, setup, parallel)?;
    if parallel.strategy.is_deepspeeds() {
        let why = "the time of DeepSpeed's step is not estimated; set `strategy` to zero1 or fsdp for one of its kind";
        return Err(SimulateError::Parallel(why.to_owned()));
    }
    record_named(model, &base, (parallel, gpu), notes)
}

/// Records a step of one GPU; for a pipeline without a stage named, of the stage that takes the most.
fn record_named(
    model: &Model,
    base: &Setup,
    (parallel, gpu): (&Parallel, Gpu),
    notes: Notes,
) -> Result<Recording, SimulateError> {
    let (named, stages) = pipeline::named(model, base, parallel, gpu)?;
    let recording = record_shared(model, base, gpu, (notes, share(&named)))?;
    Ok(Recording { stages, ..recording })
}

/// Returns the part of the model that one GPU has.
pub const fn share(parallel: &Parallel) -> Share {
    Share {
        group: parallel.group(),
        stage: pipeline::stage(parallel),
    }
}

/// Returns the setup that one GPU records if each has a part of the model: of every linear map, or of the blocks.
///
/// # Errors
/// When the strategy is not simulated for the model or the setup.
pub fn base_of_parts(model: &Model, setup: &Setup, parallel: &Parallel) -> Result<Setup, SimulateError> {
    refuse(setup, parallel)?;
    refuse_idle_tower(model, setup)?;
    refuse_sharded_experts(model, setup, parallel)?;
    match parallel.strategy.is_pipeline() {
        true => pipeline::base(model, setup, parallel),
        false => tensor::base(model, setup, parallel.world),
    }
}

/// Returns the single-GPU setup that a strategy changes.
fn base(model: &Model, setup: &Setup, parallel: &Parallel) -> Result<Setup, SimulateError> {
    if parallel.is_in_parts() {
        return base_of_parts(model, setup, parallel);
    }
    refuse(setup, parallel)?;
    refuse_idle_tower(model, setup)?;
    refuse_sharded_experts(model, setup, parallel)?;
    if parallel.strategy.is_deepspeeds() {
        return Ok(deepspeed::base(setup));
    }
    Ok(Setup {
        // Gathered parameters are in bf16, and so are the results computed with them.
        precision: if parallel.mp { Precision::Bf16 } else { setup.precision },
        ..setup.clone()
    })
}

/// Refuses samples without images for a model with a tower, whose gradients other GPUs would wait for.
fn refuse_idle_tower(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.images > 0 || !model.takes().parts {
        return Ok(());
    }
    let why = "several GPUs are simulated for samples with images; set `images` to at least 1";
    Err(SimulateError::Parallel(why.to_owned()))
}

/// Refuses adapters on experts whose weights are in parts: peft adds them to weights that it takes to be whole.
fn refuse_sharded_experts(model: &Model, setup: &Setup, parallel: &Parallel) -> Result<(), SimulateError> {
    if !model.adapts_experts(setup)
        || !(parallel.strategy.shards_parameters()
            || parallel.is_in_parts()
            || parallel.strategy == Strategy::Deepspeed3)
    {
        return Ok(());
    }
    let why = "adapters on experts are simulated with `strategy` ddp, ddp_view and zero1; take one of these, or \
               `lora_targets` attention with `lora_experts` targets";
    Err(SimulateError::Parallel(why.to_owned()))
}

/// Returns true if a setup can be shared by this strategy, for some model.
pub fn can_share(setup: &Setup, parallel: &Parallel) -> bool {
    refuse(setup, parallel).is_ok()
}

fn refuse(setup: &Setup, parallel: &Parallel) -> Result<(), SimulateError> {
    let refuse = |why: &str| Err(SimulateError::Parallel(why.to_owned()));
    let strategy = parallel.strategy;
    refuse_options(parallel)?;
    if parallel.mp && setup.precision.autocast().is_some() {
        return refuse("`mp` takes the place of autocast; set `precision` to fp32 or bf16");
    }
    if setup.trainer != TrainerKind::Loop {
        return refuse("several GPUs are simulated with `trainer` loop");
    }
    if strategy.is_deepspeeds() {
        return deepspeed::refuse(setup, parallel);
    }
    if strategy == Strategy::Tensor {
        return tensor::refuse(setup);
    }
    if strategy.is_pipeline() {
        return pipeline::refuse(setup, parallel);
    }
    let sharded = strategy.shards_parameters();
    let stateless = matches!(
        setup.optim,
        Optimizer::Adamw | Optimizer::AdamwFused | Optimizer::AdamwLoop | Optimizer::Sgd | Optimizer::Sgdm
    );
    if (sharded || strategy == Strategy::Zero1) && !stateless {
        return refuse("sharded states are simulated for `optim` adamw, adamw_fused, adamw_loop, sgd and sgdm");
    }
    if sharded && (setup.accum > 1 || setup.clip || setup.ema) {
        return refuse("FSDP2 is simulated without `accum`, `clip` and `ema`; leave them out");
    }
    if sharded && setup.zero_grad != crate::setup::ZeroGrad::ToNone {
        return refuse("FSDP2 is simulated with `zero_grad` to_none");
    }
    Ok(())
}

/// Refuses numbers out of range, and options of other strategies.
fn refuse_options(parallel: &Parallel) -> Result<(), SimulateError> {
    let refuse = |why: &str| Err(SimulateError::Parallel(why.to_owned()));
    let Parallel {
        strategy,
        world,
        mp,
        offload,
        bucket,
        stage,
        zero,
    } = *parallel;
    let least = if strategy.is_deepspeeds() { 1 } else { 2 };
    if !(least..=MOST_GPUS).contains(&world) {
        return Err(SimulateError::Parallel(format!(
            "`world` is {world}; several GPUs are {least} to {MOST_GPUS}"
        )));
    }
    if !(1..=MOST_BUCKET).contains(&bucket) {
        return Err(SimulateError::Parallel(format!(
            "`bucket` is {bucket} MB; it must be between 1 and {MOST_BUCKET}"
        )));
    }
    if offload.is_deepspeeds() && !strategy.is_deepspeeds() {
        return refuse(
            "`offload` in words is DeepSpeed's; set `strategy` to deepspeed1 or deepspeed2, or `offload` to true",
        );
    }
    if zero != Zero::default() && !strategy.is_deepspeeds() {
        return refuse("`zero` is of DeepSpeed; set `strategy` to deepspeed0, 1 or 2, or leave it out");
    }
    if (mp || offload == Offload::Shards) && !strategy.shards_parameters() {
        return refuse("`mp` and `offload` true are of FSDP2; set `strategy` to fsdp or leave them out");
    }
    if stage.is_some() && !strategy.is_pipeline() {
        return refuse("`stage` is of a pipeline; set `strategy` to pipeline or leave it out");
    }
    Ok(())
}

/// Most GPUs of a group.
const MOST_GPUS: u64 = 4096;
/// Largest bucket of DDP (MB).
const MOST_BUCKET: u64 = 65_536;
