//! One step of DeepSpeed's engine (0.19.8) on the first of several GPUs, under `bf16: enabled` with an optimizer of the
//! client's.
//!
//! DeepSpeed moves parameters and gradients between an operation and the next, so its step is recorded: the model runs on
//! the tape, and hooks on its gradients do what DeepSpeed's do. Sources: `deepspeed/runtime/engine.py`,
//! `deepspeed/runtime/zero/` and `deepspeed/runtime/fp16/`.

mod buckets;
mod group;
mod host;
mod plain;
mod refuse;
mod states;
mod values;

use std::cell::RefCell;
use std::rc::Rc;

pub(super) use refuse::refuse;

use super::super::SimulateError;
use super::super::check::check;
use super::super::steps::{Recording, Trainer, record_trainer};
use crate::dtype::DType;
use crate::setup::{AdapterType, Parallel, TrainerKind};
use crate::tape::log::StorageId;
use crate::tape::{Failure, Gpu, Tape, Tensor};
use crate::{Model, Setup};

/// What an engine does at the events of a step.
trait Stage {
    /// A parameter's gradient was made.
    fn gradient(&mut self, t: &Tape, param: &Tensor);
    /// The backward of a micro-batch is over.
    fn after_backward(&mut self, t: &Tape);
    /// Updates the parameters.
    fn step(&mut self, t: &Tape);
    /// Memory that parameters moved into, and true if it is of trained ones.
    fn weights(&self) -> Vec<(Tensor, bool)>;
    /// Storages made on another stream than the model's.
    fn streams(&self) -> Vec<(StorageId, u32)> {
        Vec::new()
    }
}

/// DeepSpeed's engine around a model.
pub struct Engine {
    stage: Rc<RefCell<dyn Stage>>,
    /// True while the last micro-batch of a step runs.
    is_boundary: Rc<std::cell::Cell<bool>>,
    /// True if losses are multiplied by the loss scale, which ZeRO's optimizers do.
    scales: bool,
}

impl Engine {
    /// `deepspeed.initialize`.
    fn new(t: &Tape, params: &[Tensor], setup: &Setup, parallel: &Parallel) -> Self {
        let is_boundary = Rc::new(std::cell::Cell::new(true));
        let boundary = is_boundary.clone();
        let stage: Rc<RefCell<dyn Stage>> = match parallel.strategy.zero_stage() {
            Some(0) => Rc::new(RefCell::new(plain::Plain::new(t, params, setup, boundary))),
            _ => Rc::new(RefCell::new(states::States::new(
                t,
                params,
                (setup, parallel),
                boundary,
            ))),
        };
        let hooked = stage.clone();
        t.on_gradient(Some(Rc::new(move |t, param| hooked.borrow_mut().gradient(t, param))));
        Self {
            stage,
            is_boundary,
            scales: parallel.strategy.zero_stage() != Some(0),
        }
    }

    /// Tells the engine if a micro-batch is the last of its step.
    pub fn begin(&self, is_last: bool) {
        self.is_boundary.set(is_last);
    }

    /// Divides a loss by the number of micro-batches, and multiplies it by the loss scale, which is 1
    /// (`engine.backward`). Both results live until backward is over.
    pub fn scaled(&self, t: &Tape, loss: &Tensor) -> [Tensor; 2] {
        let divided = t.scale(loss);
        let scaled = match self.scales {
            true => t.scale(&divided),
            false => divided.clone(),
        };
        [divided, scaled]
    }

    /// `DeepSpeedEngine._backward_epilogue`.
    pub fn after_backward(&self, t: &Tape) {
        t.no_grad(|| self.stage.borrow_mut().after_backward(t));
    }

    /// `engine.step()` at the end of a step.
    pub fn step(&self, t: &Tape) {
        t.no_grad(|| self.stage.borrow_mut().step(t));
    }
}

/// The setup that a rank records: DeepSpeed casts adapters to bf16 with all else.
pub(super) fn base(setup: &Setup) -> Setup {
    Setup {
        lora_dtype: AdapterType::Bf16,
        trainer: TrainerKind::Loop,
        ..setup.clone()
    }
}

/// Records a rank's step.
///
/// # Errors
/// When the strategy is not simulated for the setup, or the run itself would fail.
pub(super) fn record(
    model: &Model,
    (setup, parallel): (&Setup, &Parallel),
    gpu: Gpu,
) -> Result<Recording, SimulateError> {
    check(model, setup)?;
    let tape = Tape::roomy(gpu);
    tape.set_recast(Some(DType::Bf16));
    let (mut trainer, params) = Trainer::new(model, setup, &tape);
    // DeepSpeed begins with `empty_cache`.
    tape.forget_freed();
    if params.iter().all(|param| !param.requires_grad()) {
        tape.fail(|| Failure::NoGradient);
    }
    if let Some(failure) = tape.failure() {
        return Err(SimulateError::Fails(failure));
    }
    let engine = Rc::new(Engine::new(&tape, &params, setup, parallel));
    trainer.take_engine(engine.clone());
    let mut recording = record_trainer(tape, trainer, params);
    recording.streams.extend(engine.stage.borrow().streams());
    let weights = engine.stage.borrow().weights();
    recording.parameters.extend(
        weights
            .iter()
            .filter_map(|(x, trained)| Some((x.storage().id()?, *trained))),
    );
    match &recording.failure {
        Some(failure) => Err(SimulateError::Fails(failure.clone())),
        None => Ok(recording),
    }
}
