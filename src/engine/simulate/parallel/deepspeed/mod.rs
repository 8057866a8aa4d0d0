//! One step of DeepSpeed's engine (0.19.8) on the first of several GPUs, under `bf16: enabled` or `fp16: enabled` with an
//! optimizer of the client's.
//!
//! DeepSpeed moves parameters and gradients between an operation and the next, so its step is recorded: the model runs on
//! the tape, and hooks on its gradients do what DeepSpeed's do. Sources: `deepspeed/runtime/engine.py`,
//! `deepspeed/runtime/zero/` and `deepspeed/runtime/fp16/`.

mod buckets;
mod compared;
mod coordinator;
mod gradients;
mod group;
mod host;
mod partitioned;
mod plain;
mod refuse;
mod shards;
mod states;
mod values;
mod watcher;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

pub(super) use refuse::refuse;

use super::super::check::check;
use super::super::engine::{Engine, EngineOptimizer};
use super::super::steps::{Notes, Recording, Trainer, record_trainer};
use super::super::trl::ReferenceModel;
use super::super::{SimulateError, unshared as why};
use super::leaves_pixels;
use crate::dtype::DType;
use crate::optim::Optimizer;
use crate::setup::{AdapterType, Freeze, Parallel, Precision, SavedType, Strategy};
use crate::tape::{Failure, Gpu, Tape, Tensor};
use crate::{Model, Setup};
use partitioned::Partitioned;
use plain::Plain;
use states::States;
use watcher::Watcher;

/// The setup that a rank records: DeepSpeed casts adapters to 16 bits with all else, and accelerate leaves autocast out.
///
/// With neither it runs in fp32, and keeps no copy of the parameters. The step of `fp16: enabled` is that of `bf16:
/// enabled`: ZeRO's optimizers multiply the loss by a scale, which is 1 in bf16; stages 1 and 2 look for overflows in
/// both types (`check_grad_overflow`), stage 3 in fp16 alone.
pub(super) fn base(setup: &Setup, parallel: &Parallel) -> Setup {
    Setup {
        precision: match setup.precision.products() {
            DType::F16 => Precision::Fp16,
            DType::F32 => Precision::Fp32,
            _ => Precision::Bf16,
        },
        // TRL makes adapters of the weights' type under stage 3 (`autocast_adapter_dtype=False`).
        lora_dtype: match is_made_in_parts(setup, parallel) && !setup.trainer.is_trl() {
            true => setup.lora_dtype,
            false if setup.precision.products() == DType::F32 => AdapterType::Fp32,
            false => AdapterType::Bf16,
        },
        // Copies of modules are cast to 16 bits too, whatever a tool cast them to before.
        saved_dtype: SavedType::AsWeights,
        reentrant: setup.reentrant || forces_reentrant(setup, parallel),
        ..setup.clone()
    }
}

/// True if TRL makes checkpoints reentrant whatever it was told: adapters under stage 3, where a recomputation that stops
/// early would find the parameters of its last modules released (`trl/trainer/sft_trainer.py` and its kin, 1.16).
fn forces_reentrant(setup: &Setup, parallel: &Parallel) -> bool {
    setup.trainer.is_trl() && setup.freeze.is_adapted() && parallel.strategy == Strategy::Deepspeed3
}

/// True if a trainer makes the model within `zero.Init`. The engine takes its parameters to have their types already, and
/// casts none: adapters, which peft makes afterwards, stay in fp32 (`_cast_module_mixed_precision`).
fn is_made_in_parts(setup: &Setup, parallel: &Parallel) -> bool {
    parallel.strategy == Strategy::Deepspeed3 && setup.trainer.is_derived()
}

/// Types in which weights and adapters are made that the engine casts (`_configure_distributed_model`).
fn made_types(given: &Setup, low: DType) -> [Option<DType>; 2] {
    let are_cast = [given.casts_weights(), given.lora_dtype == AdapterType::Fp32];
    are_cast.map(|is| (is && low.is_half() && given.freeze != Freeze::Qlora).then_some(DType::F32))
}

/// Records a rank's step of a setup that [`base`] makes of the `given` one.
///
/// # Errors
/// When the setup does not fit the model, or the run itself would fail.
pub(super) fn record(
    model: &Model,
    (setup, given, parallel): (&Setup, &Setup, &Parallel),
    (gpu, notes): (Gpu, Notes),
) -> Result<Recording, SimulateError> {
    check(model, setup)?;
    let tape = Tape::roomy(gpu);
    if notes.work {
        tape.write_work();
    }
    tape.set_in_launch(true);
    let low = setup.precision.weights();
    let is_made_in_parts = is_made_in_parts(setup, parallel);
    tape.set_recast((!is_made_in_parts).then_some(low));
    // Within `zero.Init` each tensor of numbers that a constructor makes is in 16 bits.
    tape.set_buffer_type(is_made_in_parts.then_some(low));
    let made_types = made_types(given, low);
    // A trainer's model is on the host until the engine takes it, and is cast there: nothing wide is made on the GPU.
    if !is_made_in_parts && !given.trainer.loads_models() {
        tape.set_made_types(made_types);
    }
    let (mut trainer, params) = Trainer::new(model, setup, &tape);
    if leaves_pixels(given, setup) {
        trainer.run.leave_pixels();
    }
    // DeepSpeed begins with `empty_cache`.
    tape.empty_cache();
    let scalar = params.iter().find(|param| param.dim() == 0);
    if let Some(scalar) = scalar.filter(|_| is_made_in_parts) {
        tape.fail(|| Failure::ScalarParameter {
            parameter: tape.path_of(scalar),
        });
    }
    if params.iter().all(|param| !param.requires_grad()) {
        tape.fail(|| Failure::NoGradient);
    }
    if let Some(failure) = tape.failure() {
        return Err(SimulateError::Fails(failure));
    }
    let Trainer {
        optimizer, reference, ..
    } = &mut trainer;
    let model = (params.as_slice(), &*optimizer, made_types[0]);
    let (engine, watcher) = initialize(&tape, model, reference.as_mut(), (setup, parallel));
    trainer.wrap(Rc::new(engine), true);
    let recording = record_trainer(tape, trainer, params);
    if watcher.is_some_and(|watcher| watcher.has_missed()) {
        return Err(why::deepspeed_shared());
    }
    match &recording.failure {
        Some(failure) => Err(SimulateError::Fails(failure.clone())),
        None => Ok(recording),
    }
}

/// `deepspeed.initialize`.
fn initialize(
    t: &Tape,
    (params, client, made): (&[Tensor], &Optimizer, Option<DType>),
    reference: Option<&mut ReferenceModel>,
    (setup, parallel): (&Setup, &Parallel),
) -> (Engine, Option<Rc<Watcher>>) {
    let is_boundary = Rc::new(Cell::new(true));
    let boundary = is_boundary.clone();
    let mut watcher = None;
    let optimizer: Rc<RefCell<dyn EngineOptimizer>> = match parallel.strategy {
        Strategy::Deepspeed0 => Rc::new(RefCell::new(Plain::new(
            t,
            client,
            (setup.clip, parallel.world),
            boundary,
        ))),
        Strategy::Deepspeed3 => {
            let partitioned = Partitioned::new(t, (params, client, made), reference, (setup, parallel), boundary);
            watcher = Some(partitioned.watcher());
            Rc::new(RefCell::new(partitioned))
        }
        _ => Rc::new(RefCell::new(States::new(t, client, (setup, parallel), boundary))),
    };
    let scales = parallel.strategy != Strategy::Deepspeed0;
    (Engine::new(t, optimizer, is_boundary, scales), watcher)
}
