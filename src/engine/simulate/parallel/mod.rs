//! Simulates a training step on one of several GPUs: by hooks around a model for DDP, DeepSpeed, and FSDP2 as accelerate
//! prepares it, by rewriting the recorded step of one GPU for ZeRO-1 and FSDP2 in a loop of one's own, and by recording a
//! part of the model for tensor and pipeline parallelism.
//!
//! Forward and backward of a rank are those of a single GPU. A strategy adds memory between their operations (buckets,
//! gathered parameters, reduced gradients) and removes whole tensors (states of another rank's parameters, all but a
//! shard). Sources:
//! `torch/nn/parallel/distributed.py`, `torch/csrc/distributed/c10d/reducer.cpp`,
//! `torch/distributed/optim/zero_redundancy_optimizer.py` and `torch/distributed/fsdp/_fully_shard/` of PyTorch 2.11.
//!
//! NCCL's own buffers are outside the allocator and are not counted here.

mod apart;
mod ddp;
mod deepspeed;
mod fsdp;
mod modules;
mod pipeline;
mod shard;
mod tensor;
pub mod units;
mod zero;

pub use pipeline::{distinct as distinct_stages, stages as pipeline_stages};
pub use shard::shard;
pub use tensor::parts as tensor_parts;
pub use zero::own;

use super::steps::{Notes, Recording, Share, Trainer, Wrap, record_shared};
use super::ways_out::with_ways_out;
use fsdp::plan::Plan;

use super::{SimulateError, check, played, unshared as why};
use crate::optim::is_bitsandbytes;
use crate::setup::{Freeze, Offload, Optimizer, Parallel, Precision, Strategy, TrainerKind, Zero};
use crate::tape::{Gpu, Tape, Tensor};
use crate::{Model, Report, Setup};

/// Simulates three training steps on the first of several GPUs.
///
/// # Errors
/// Returns the errors of [`simulate_on`](super::simulate_on), or an error if the strategy is not simulated for the
/// setup.
pub fn simulate_parallel(model: &Model, setup: &Setup, parallel: &Parallel, gpu: Gpu) -> Result<Report, SimulateError> {
    let recording = record_parallel(model, setup, parallel, gpu)?;
    played(model, (setup, Some(parallel)), recording)
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
    recorded(model, (setup, parallel), gpu, notes).map_err(|why| with_ways_out(model, (setup, parallel), why))
}

fn recorded(
    model: &Model,
    (setup, parallel): (&Setup, &Parallel),
    gpu: Gpu,
    notes: Notes,
) -> Result<Recording, SimulateError> {
    check::check(model, setup)?;
    let base = base(model, setup, parallel)?;
    if parallel.strategy.is_deepspeeds() {
        return deepspeed::record(model, (&base, setup, parallel), (gpu, notes));
    }
    let recording = record_named(model, (&base, setup), (parallel, gpu), notes)?;
    Ok(of_one(recording, (setup, parallel)))
}

/// Returns the run of one of several GPUs of which [`work_of_one`] recorded a step; that of FSDP2 in a loop is recorded anew,
/// since that step is without what it gathers.
///
/// # Errors
/// If the strategy is not simulated for what was recorded.
pub(super) fn of_recorded(
    model: &Model,
    (setup, parallel): (&Setup, &Parallel),
    (recording, gpu): (Recording, Gpu),
) -> Result<Recording, SimulateError> {
    let updates_its_own = parallel.strategy == Strategy::Zero1 && !zero::is_rewritten(setup.optim);
    let is_without = parallel.strategy.shards_parameters() && !parallel.is_recorded_whole(setup);
    match is_without || updates_its_own {
        true => record_parallel(model, setup, parallel, gpu),
        false => Ok(of_one(recording, (setup, parallel))),
    }
}

/// Rewrites a recorded step of a single GPU for a strategy.
fn of_one(recording: Recording, (setup, parallel): (&Setup, &Parallel)) -> Recording {
    match parallel.strategy {
        Strategy::Zero1 if zero::is_rewritten(setup.optim) => zero::rewrite(recording, parallel),
        // Recorded in this form: each operation is that of one GPU.
        _ => recording,
    }
}

/// Records kernels and host ops in a step as one of several GPUs runs it. What the strategy adds is among them where it is
/// recorded whole ([`Parallel::is_recorded_whole`]).
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
        return deepspeed::record(model, (&base, setup, parallel), (gpu, notes));
    }
    if !parallel.is_recorded_whole(setup) && parallel.strategy.shards_parameters() {
        return record_shared(model, &base, gpu, (notes, share(parallel)), None);
    }
    record_named(model, (&base, setup), (parallel, gpu), notes)
}

/// True if pixel values come in fp32 to a model that runs in 16 bits: those of TRL always do, those of `Trainer` where the
/// weights were loaded in fp32.
fn leaves_pixels(given: &Setup, base: &Setup) -> bool {
    let arrive_wide = match given.trainer {
        TrainerKind::Transformers => !given.precision.weights().is_half(),
        trainer => trainer.is_trl(),
    };
    arrive_wide && base.precision.weights().is_half()
}

/// What wraps a model for a strategy.
type Around<'a> = &'a dyn Fn(&Tape, &mut Trainer, &[Tensor]);

/// Records a step of one GPU; for a pipeline without a stage named, of the stage that takes the most.
fn record_named(
    model: &Model,
    (base, given): (&Setup, &Setup),
    (parallel, gpu): (&Parallel, Gpu),
    notes: Notes,
) -> Result<Recording, SimulateError> {
    let (named, stages) = pipeline::named(model, base, parallel, gpu)?;
    let view = matches!(parallel.strategy, Strategy::DdpView | Strategy::Zero1);
    // The time of all updates is shared later.
    let updates_its_own = parallel.strategy == Strategy::Zero1 && !zero::is_rewritten(base.optim) && !notes.work;
    let in_ddp: Around<'_> = &|t, trainer, params| {
        // `Trainer` makes its optimizer before, and a script over what is wrapped.
        if base.trainer.is_derived() {
            trainer.optimizer.make_states(t);
        }
        ddp::wrap(t, (trainer, params), (base, parallel), view);
        if updates_its_own {
            zero::keep_own(&mut trainer.optimizer, parallel.world);
        }
    };
    let adapts = matches!(base.freeze, Freeze::Lora | Freeze::Qlora);
    let in_fsdp: Around<'_> = &|t, trainer, params| {
        let reshards = parallel.strategy == Strategy::Fsdp;
        let plan = match base.trainer.is_derived() {
            true => Plan::of(t, model, params, (reshards, adapts)),
            false => Plan::of_loop(t, params, reshards),
        };
        fsdp::hooks::wrap(t, (trainer, params), (model, plan), (given, parallel));
    };
    let in_fsdp1: Around<'_> = &|t, trainer, params| {
        let plan = Plan::flat(t, model, params);
        fsdp::flat::wrap(t, (trainer, params), plan, (given, parallel));
    };
    let around = match parallel.strategy {
        Strategy::Ddp | Strategy::DdpView | Strategy::Zero1 => Some(in_ddp),
        Strategy::Fsdp | Strategy::FsdpNoReshard => Some(in_fsdp),
        Strategy::Fsdp1 | Strategy::Fsdp1NoReshard => Some(in_fsdp1),
        _ => None,
    };
    // The `buffer_dtype` of FSDP1's mixed precision.
    let is_fsdp1s = parallel.strategy.is_fsdp1() && fsdp::types::is_mixed(given);
    let buffers = is_fsdp1s.then(|| fsdp::types::gathered(given));
    let leaves_pixels = leaves_pixels(given, base);
    let wrap = around.map(|around| Wrap {
        around,
        buffers,
        leaves_pixels,
        made_types: fsdp::types::made_types(given, parallel),
        flattens: parallel.strategy.is_fsdp1(),
        moves: fsdp::types::moves(given, parallel),
    });
    let recording = record_shared(model, base, gpu, (notes, share(&named)), wrap)?;
    Ok(Recording { stages, ..recording })
}

/// Returns the part of the model that one GPU has.
pub const fn share(parallel: &Parallel) -> Share {
    Share {
        group: parallel.group(),
        stage: pipeline::stage(parallel),
    }
}

/// Returns the setup that one GPU records if each has a part of the model: of every linear layer, or of the blocks.
///
/// # Errors
/// When the strategy is not simulated for the model or the setup.
pub fn base_of_parts(model: &Model, setup: &Setup, parallel: &Parallel) -> Result<Setup, SimulateError> {
    refuse(setup, parallel)?;
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
    refuse_sharded_experts(model, setup, parallel)?;
    if parallel.strategy.is_deepspeeds() {
        return Ok(deepspeed::base(setup, parallel));
    }
    let is_accelerates = parallel.strategy.shards_parameters() && setup.trainer.is_derived();
    if is_accelerates && !model.takes().text {
        return Err(why::fsdp_without_text());
    }
    if is_accelerates || parallel.strategy.is_fsdp1() {
        let is_fsdp1 = parallel.strategy.is_fsdp1();
        return Ok(fsdp::types::base(setup, is_fsdp1));
    }
    Ok(Setup {
        // Gathered parameters are in bf16, and so are the results computed with them.
        precision: if parallel.mp { Precision::Bf16 } else { setup.precision },
        ..setup.clone()
    })
}

/// Refuses adapters on experts whose weights lie where peft's `ParamWrapper` cannot put them, or where that was not compared.
fn refuse_sharded_experts(model: &Model, setup: &Setup, parallel: &Parallel) -> Result<(), SimulateError> {
    match parallel.strategy {
        _ if !model.adapts_experts(setup) => Ok(()),
        strategy if strategy.is_fsdp1() => Err(why::fsdp1_experts()),
        strategy if parallel.is_in_parts() || strategy == Strategy::Deepspeed3 => Err(why::adapted_experts()),
        _ => Ok(()),
    }
}

/// Checks that GPUs can share a setup of a model by this strategy, without simulating it.
///
/// # Errors
/// Returns those errors of [`simulate_parallel`] that are known before the step is recorded.
pub fn can_train(model: &Model, setup: &Setup, parallel: &Parallel) -> Result<(), SimulateError> {
    check::check(model, setup)?;
    base(model, setup, parallel).map(drop)
}

/// Returns true if a setup can be shared by this strategy, for some model.
pub fn can_share(setup: &Setup, parallel: &Parallel) -> bool {
    refuse(setup, parallel).is_ok()
}

fn refuse(setup: &Setup, parallel: &Parallel) -> Result<(), SimulateError> {
    let strategy = parallel.strategy;
    refuse_options(parallel)?;
    if parallel.mp && setup.trainer.is_derived() {
        return Err(why::mp_trainer());
    }
    if parallel.mp && setup.precision.autocast().is_some() {
        return Err(why::mp_autocast());
    }
    refuse_trainer(setup, strategy)?;
    if setup.compile {
        return Err(why::compiled());
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
    let sharded = strategy.shards_parameters() || strategy.is_fsdp1();
    if strategy.is_fsdp1() && setup.precision.has_scaler() && setup.optim == Optimizer::AdamwFused {
        return Err(why::fsdp1_scaler());
    }
    // `_validate_tensors_to_flatten`
    if strategy.is_fsdp1() && setup.freeze == Freeze::Qlora && !setup.trainer.is_trl() {
        return Err(why::fsdp1_types());
    }
    if strategy.shards_parameters() && setup.optim == Optimizer::Adafactor {
        return Err(why::fsdp_adafactor());
    }
    if strategy.shards_parameters() && is_bitsandbytes(setup.optim) {
        return Err(why::fsdp_bitsandbytes());
    }
    match setup.optim {
        Optimizer::AdafactorTorch if strategy.shards_parameters() => return Err(why::fsdp_adafactor_torch()),
        Optimizer::Adagrad | Optimizer::AdagradLoop if strategy.shards_parameters() && setup.trainer.is_derived() => {
            return Err(why::fsdp_adagrad());
        }
        Optimizer::Muon if strategy.is_fsdp1() => return Err(why::flat_muon()),
        _ => {}
    }
    if sharded && setup.ema {
        return Err(why::fsdp_ema());
    }
    if sharded && setup.trains_saved_modules() {
        return Err(why::saved_sharded());
    }
    Ok(())
}

/// Refuses trainers that a strategy is not simulated with.
fn refuse_trainer(setup: &Setup, strategy: Strategy) -> Result<(), SimulateError> {
    match setup.trainer {
        TrainerKind::Loop => Ok(()),
        TrainerKind::Transformers | TrainerKind::TrlSft | TrainerKind::MsSwift if strategy.is_fsdp1() => Ok(()),
        TrainerKind::TrlGrpo if strategy.shards_parameters() || strategy.is_fsdp1() => Err(why::grpo_sharded()),
        _ if strategy.shards_parameters() => Ok(()),
        _ if strategy.is_deepspeeds() || matches!(strategy, Strategy::Ddp | Strategy::DdpView) => Ok(()),
        _ => Err(why::loop_alone()),
    }
}

/// Refuses numbers out of range, and options of other strategies.
fn refuse_options(parallel: &Parallel) -> Result<(), SimulateError> {
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
        return Err(why::world(&least, &MOST_GPUS, &world));
    }
    if !(1..=MOST_BUCKET).contains(&bucket) {
        return Err(why::bucket(&bucket, &MOST_BUCKET));
    }
    if offload.is_deepspeeds() && !strategy.is_deepspeeds() {
        return Err(why::deepspeed_offload());
    }
    if zero != Zero::default() && !strategy.is_deepspeeds() {
        return Err(why::deepspeed_keys());
    }
    let shards = offload == Offload::Shards && !strategy.shards_parameters() && !strategy.is_fsdp1();
    if shards || mp && !strategy.shards_parameters() {
        return Err(why::fsdp_options());
    }
    if stage.is_some() && !strategy.is_pipeline() {
        return Err(why::stage_elsewhere());
    }
    Ok(())
}

/// Most GPUs of a group.
const MOST_GPUS: u64 = 4096;
/// Largest bucket of DDP (MB).
const MOST_BUCKET: u64 = 65_536;
