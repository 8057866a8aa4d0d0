//! Runs training steps on the tape, and records them.

use std::rc::Rc;

use super::SimulateError;
use super::build::{Built, build_with, elements};
use super::check::check;
use super::engine::Engine;
use super::fetched::Fetched;
use super::grpo_generation::Generations;
use super::labels::labelled;
use super::parts::{Parts, Passes};
use super::schedule::Pipeline;
use super::trl::{ReferenceModel, doubled};
use super::unrolled::record_on;
use super::work::{Work, WorkMarks};
use super::wrapper::{Wrapper, wrapped_by};
use crate::dtype::DType;
use crate::model::Model;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::Builder;
use crate::optim::{Ema, GradScaler, Optimizer, clip_grad_norm};
use crate::setup::{Setup, TrainerKind, ZeroGrad};
use crate::tape::log::{Event, Log, StorageId};
use crate::tape::{Failure, Gpu, Mark, Stage, Tape, Tensor};
use crate::units::Bytes;

/// Positions among the events of one step.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepMarks {
    /// Inputs of the last micro-batch are on the GPU.
    pub before_forward: usize,
    /// The loss of the last micro-batch is computed, and other outputs are dropped.
    pub after_forward: usize,
    /// Backward of the last micro-batch is done.
    pub after_backward: usize,
    /// Optimizer and scaler are done.
    pub after_optimizer: usize,
}

/// One step: its events, and the positions of its phases.
#[derive(Clone)]
pub struct Step {
    /// Allocations and frees, in order.
    pub events: Vec<Event>,
    /// Positions among the events.
    pub marks: StepMarks,
}

impl Step {
    /// Marks at which figures are noted, each with the number of events before it.
    pub(super) fn instants(&self) -> [(Mark, usize); 5] {
        [
            (Mark::BeforeForward, self.marks.before_forward),
            (Mark::AfterForward, self.marks.after_forward),
            (Mark::AfterBackward, self.marks.after_backward),
            (Mark::AfterOptimizer, self.marks.after_optimizer),
            (Mark::End, self.events.len()),
        ]
    }
}

/// A recorded run.
///
/// Forward and backward of every step are alike, except for storages that the first one makes to stay: library
/// workspaces, the scaler's state. So they are recorded once, and the optimizer twice.
#[derive(Clone)]
pub struct Recording {
    /// Descriptions of the storages.
    pub log: Log,
    /// Events of making the model, and then of preparing it for several GPUs.
    pub build: Vec<Event>,
    /// Numbers of those events before each call of `torch.cuda.empty_cache()`: what comes behind finds no cached memory.
    pub emptied: Vec<usize>,
    /// The first step, in which optimizer states appear.
    pub first: Step,
    /// Every step after the first.
    pub steady: Step,
    /// Parameters, in elements.
    pub params: u64,
    /// Parameters that are trained, in elements.
    pub trainable: u64,
    /// Each parameter that holds memory, and true if it is trained.
    pub parameters: Vec<(StorageId, bool)>,
    /// Storages made on another stream than the model's.
    pub streams: Vec<(StorageId, u32)>,
    /// Highest live bytes of the pipeline's stages, this stage first, if it was chosen because it has the most.
    pub stages: Vec<(u64, Bytes)>,
    /// Optimizer states in managed memory, which CUDA moves between host and device.
    pub paged: Bytes,
    /// The error that the run would raise.
    pub failure: Option<Failure>,
    /// Kernels and host ops of a step after the first; empty unless requested.
    pub work: Work,
}

/// Initial capacity for work items; a longer list is copied as it grows.
const USUAL_WORK: usize = 1 << 16;

/// Optional details of a recording.
#[derive(Debug, Clone, Copy, Default)]
pub struct Notes {
    /// Records kernels and host ops too.
    pub work: bool,
    /// Records the hundreds of segments of an image as one sum: enough to count live bytes, but not to replay them
    /// through an allocator.
    pub sums: bool,
}

/// Part of a model that one of several GPUs has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// GPUs that share the linear layers of a language model; 1 if one GPU has them whole.
    pub group: u64,
    /// The stage of a pipeline that it runs.
    pub stage: Stage,
}

impl Share {
    /// The whole model.
    pub const ALONE: Self = Self {
        group: 1,
        stage: Stage::WHOLE,
    };

    /// Makes a tape build models with this share.
    pub fn set(self, tape: &Tape) {
        tape.set_group(self.group);
        tape.set_stage(self.stage);
    }
}

/// Makes the model and records a step with two optimizer updates.
pub fn record(model: &Model, setup: &Setup, gpu: Gpu) -> Recording {
    record_on(model, setup, &Tape::roomy(gpu), None)
}

/// Records a step with kernels and host ops.
///
/// # Errors
/// When the setup does not fit the model, or the run itself would fail; the message says what to change.
pub fn record_work(model: &Model, setup: &Setup, gpu: Gpu) -> Result<Recording, SimulateError> {
    let notes = Notes {
        work: true,
        sums: false,
    };
    record_notes(model, setup, gpu, notes)
}

/// Records a step with the details that `notes` asks for.
///
/// # Errors
/// Returns the errors of [`record_work`].
pub fn record_notes(model: &Model, setup: &Setup, gpu: Gpu, notes: Notes) -> Result<Recording, SimulateError> {
    record_shared(model, setup, gpu, (notes, Share::ALONE), None)
}

/// What goes around a model for several GPUs.
#[derive(Clone, Copy)]
pub(super) struct Wrap<'a> {
    /// Wraps a model that was just made, with these parameters.
    pub around: &'a dyn Fn(&Tape, &mut Trainer, &[Tensor]),
    /// Type that buffers in fp32 get.
    pub buffers: Option<DType>,
    /// True if pixel values stay in fp32 ([`Run::leave_pixels`]).
    pub leaves_pixels: bool,
    /// Types in which weights and adapters are made, if it gathers them in another.
    pub made_types: [Option<DType>; 2],
    /// True if it flattens each module's parameters, by which a weight of two modules becomes two.
    pub flattens: bool,
    /// True if it moves the model from the host.
    pub moves: bool,
}

/// Records a step on one of several GPUs, for its share of the model, which `wrap` wraps, if anything does.
///
/// # Errors
/// Returns the errors of [`record_work`].
pub(super) fn record_shared(
    model: &Model,
    setup: &Setup,
    gpu: Gpu,
    (notes, share): (Notes, Share),
    wrap: Option<Wrap<'_>>,
) -> Result<Recording, SimulateError> {
    check(model, setup)?;
    let tape = Tape::roomy(gpu);
    share.set(&tape);
    tape.set_in_launch(wrap.is_some());
    tape.set_made_types(wrap.map(|wrap| wrap.made_types).unwrap_or_default());
    if wrap.is_some_and(|wrap| wrap.flattens) {
        tape.set_wrapped_apart(model.modules_kept_whole().unwrap_or_default());
    }
    tape.set_on_host(wrap.is_some_and(|wrap| wrap.moves));
    tape.set_buffer_type(wrap.and_then(|wrap| wrap.buffers));
    if notes.work {
        tape.expect_work(USUAL_WORK);
    }
    if notes.sums {
        tape.sum_segments();
    }
    let recording = record_on(model, setup, &tape, wrap);
    match &recording.failure {
        Some(failure) => Err(SimulateError::Fails(failure.clone())),
        None => Ok(recording),
    }
}

/// Records a step of a model that was just made, and prepared if the cache was emptied before, with these parameters.
pub(super) fn record_trainer(tape: Tape, mut trainer: Trainer, params: Vec<Tensor>) -> Recording {
    let after_model = tape.mark();
    let mut emptied = tape.emptied();
    if emptied.is_empty() {
        emptied.push(after_model);
    }
    trainer.optimizer.make_states(&tape);
    trainer.optimizer.place_states(&tape);
    let after_optimizer = tape.mark();
    tape.reach(Mark::Model);
    let count = |f: &dyn Fn(&Tensor) -> bool| params.iter().filter(|p| f(p)).map(elements).sum();
    let (total, trainable) = (count(&|_| true), count(&Tensor::requires_grad));
    let mut parameters: Vec<(StorageId, bool)> = params
        .iter()
        .filter_map(|p| Some((p.storage().id()?, p.requires_grad())))
        .collect();
    drop(params);
    let parts = trainer.run();
    let failure = tape.failure();
    let paged = trainer.optimizer.paged();
    let wrapper = trainer.wrapper.take();
    let compared = trainer
        .reference
        .as_ref()
        .and_then(|reference| reference.wrapper.clone());
    let moved = wrapper.iter().flat_map(|wrapper| wrapper.weights());
    parameters.extend(moved.filter_map(|(x, trained)| Some((x.storage().id()?, trained))));
    let wrappers = wrapper.iter().chain(&compared);
    let streams = wrappers.flat_map(|wrapper| wrapper.streams()).collect();
    let work = std::mem::take(&mut trainer.work).divide(tape.take_work());
    drop((trainer, wrapper, compared));
    let mut log = tape.finish();
    let events = std::mem::take(&mut log.events);
    let build = events[..after_optimizer].to_vec();
    let (first, steady) = parts.steps(events);
    Recording {
        log,
        build,
        emptied,
        first,
        steady,
        params: total,
        trainable,
        parameters,
        streams,
        stages: Vec::new(),
        paged,
        failure,
        work,
    }
}

/// Returns a setup as the model sees it, and passes the tape its own settings.
fn prepared(model: &Model, setup: &Setup, tape: &Tape) -> Setup {
    let setup = labelled(model, doubled(model.prepared(setup)));
    if setup.trainer.is_dpo() {
        tape.disable_dropout_modules();
    }
    tape.set_autocast_cache(setup.autocast_cache);
    tape.set_padded(setup.is_padded());
    setup
}

fn scaler(setup: &Setup) -> GradScaler {
    GradScaler::new(setup.precision.has_scaler())
}

/// A model on the tape, with its optimizer and scaler.
pub(super) struct Trainer {
    tape: Tape,
    pub(super) forward: Box<dyn Forward>,
    pub(super) run: Run,
    pub optimizer: Optimizer,
    pub(super) scaler: GradScaler,
    pub(super) autocast: Option<DType>,
    ema: Option<Ema>,
    pub work: WorkMarks,
    /// Pipeline, if the model is a stage of one.
    pub pipeline: Option<Box<Pipeline>>,
    /// True if micro-batches that go the way of the one before are repeated and not run.
    pub repeats: bool,
    /// True if of equal layers one runs, and the pass is unrolled; who sets it records again if that is refused.
    pub rolls: bool,
    /// Tensors that transformers' `Trainer` keeps from one step to the next.
    pub(super) fetched: Fetched,
    /// Second copy of the model that DPO and GRPO compare with.
    pub(super) reference: Option<ReferenceModel>,
    /// What GRPO generates.
    pub(super) generations: Option<Generations>,
    /// What wraps the model for several GPUs.
    pub(super) wrapper: Option<Rc<dyn Wrapper>>,
    /// Parameters of modules that the forward never runs.
    _unused: Vec<Tensor>,
    /// Memory of other models on the same GPU.
    _beside: Option<Tensor>,
}

impl Trainer {
    /// Makes the model, and returns its parameters too.
    pub fn new(model: &Model, setup: &Setup, tape: &Tape) -> (Self, Vec<Tensor>) {
        Self::with(model, setup, tape, Builder::params)
    }

    /// Makes the model, and returns its parameters too, in the order of `params`.
    pub fn with(model: &Model, setup: &Setup, tape: &Tape, params: fn(&Builder) -> Vec<Tensor>) -> (Self, Vec<Tensor>) {
        let setup = &prepared(model, setup, tape);
        let Built {
            forward,
            params,
            unused,
            ema,
        } = build_with(tape, model, setup, params);
        if tape.stays_on_host() {
            tape.keep_on_host(&params);
            // Of FSDP, TRL's `device_map` stays "auto": what it compares with is loaded on the GPU.
            tape.set_in_launch(false);
        }
        let trainer = Self {
            run: Run::new(model, setup),
            optimizer: match setup.trainer.is_derived() {
                false => Optimizer::with_tables(tape, setup.optim, &params),
                true => Optimizer::grouped(tape, setup.optim, &params),
            },
            scaler: scaler(setup),
            autocast: setup.precision.autocast(),
            tape: tape.clone(),
            forward,
            ema,
            work: WorkMarks::default(),
            pipeline: Pipeline::of(model, setup, tape).map(Box::new),
            repeats: true,
            rolls: false,
            fetched: Fetched::of(model),
            reference: ReferenceModel::of(tape, model, setup),
            generations: Generations::of(model, setup),
            wrapper: None,
            _unused: unused,
            _beside: (setup.beside > 0).then(|| tape.empty([setup.beside << 20], DType::U8, "other models")),
        };
        (trainer, params)
    }

    /// Switches to another setup that makes the same model ([`super::build::ModelSettings`]), and drops the state of
    /// earlier runs except gradients, optimizer states and averages.
    pub fn turn_to(&mut self, model: &Model, setup: &Setup) {
        let setup = &prepared(model, setup, &self.tape);
        self.run = Run::new(model, setup);
        self.scaler = scaler(setup);
        self.autocast = setup.precision.autocast();
    }

    /// Wraps the model. `acts` is true if the wrapper does something with gradients or parameters, so that each layer of
    /// each micro-batch runs by itself.
    pub fn wrap(&mut self, wrapper: Rc<dyn Wrapper>, acts: bool) {
        self.wrapper = Some(wrapper);
        self.repeats &= !acts;
        self.rolls &= !acts;
    }

    /// DeepSpeed's engine, if it runs the step.
    pub(super) fn engine(&self) -> Option<&Engine> {
        self.wrapper.as_ref()?.engine()
    }

    fn run(&mut self) -> Parts {
        let shards_states = self.wrapper.as_ref().is_some_and(|wrapper| wrapper.shards_states());
        let keeps = self.forward.keeps_states();
        let is_whole = shards_states || keeps || self.engine().is_some() || self.run.setup.trainer.is_derived();
        let parts = match self.run.setup.zero_grad {
            ZeroGrad::ToNone if !is_whole => self.run_once(),
            _ => {
                self.tape.pause_follower();
                let (passes, [update, _]) = self.step();
                self.wrapper
                    .iter()
                    .for_each(|wrapper| wrapper.after_first_step(&self.tape));
                let first = (passes, [update, self.tape.mark()]);
                Parts::Separate([first, self.step()])
            }
        };
        self.tape
            .revise(|events, allocations| parts.name_states(events, allocations));
        self.tape.send_rest(parts.rest());
        parts
    }

    /// Runs one forward and backward, and two updates.
    fn run_once(&mut self) -> Parts {
        let t = self.tape.clone();
        let passes = self.micro_batches(&t);
        t.pause_follower();
        self.update(&t);
        let first_update = t.mark();
        self.update(&t);
        let second_update = t.mark();
        self.optimizer.zero_grad();
        Parts::Shared {
            passes,
            ends: [first_update, second_update, t.mark()],
        }
    }

    /// Runs one whole step; returns the ends of its update and of the step too.
    fn step(&mut self) -> (Passes, [usize; 2]) {
        let t = self.tape.clone();
        let passes = self.micro_batches(&t);
        self.update(&t);
        let update = t.mark();
        if self.run.setup.zero_grad == ZeroGrad::ToNone {
            self.optimizer.zero_grad();
        }
        (passes, [update, t.mark()])
    }

    /// Runs clipping, the optimizer's step, and the moving average.
    pub fn update(&mut self, t: &Tape) {
        if let Some(engine) = self.engine() {
            // accelerate's `backward` has stepped.
            if !self.run.setup.trainer.is_derived() {
                let update = t.work_mark();
                engine.step(t);
                self.ema.iter().for_each(|ema| ema.update(t));
                (self.work.update, self.work.end) = (update, t.work_mark());
            }
            return;
        }
        self.work.update = t.work_mark();
        let wrapper = self.wrapper.clone();
        wrapper
            .iter()
            .for_each(|wrapper| wrapper.update_on_host(t, &self.optimizer));
        // `Trainer` clips at infinity where it is not to clip, for the norm that it logs (`_get_grad_norm`).
        if self.run.setup.clip || self.run.setup.trainer.is_derived() {
            self.fetched.norm = None;
            let norms = self.wrapper.as_ref().map(|wrapper| wrapper.norms()).unwrap_or_default();
            let norm = clip_grad_norm(t, self.optimizer.params(), norms);
            self.fetched.norm = norm.filter(|_| self.run.setup.trainer.is_derived());
        }
        self.scaler.step(t, &mut self.optimizer);
        self.ema.iter().for_each(|ema| ema.update(t));
        self.optimizer.zero_grad_work(t);
        self.work.end = t.work_mark();
    }

    /// The model on the tape.
    pub fn forward(&self) -> &dyn Forward {
        self.forward.as_ref()
    }

    /// Runs a forward of the trained model as what wraps it does.
    pub(super) fn wrapped<R>(&self, t: &Tape, forward: impl FnOnce() -> R) -> R {
        wrapped_by(t, self.wrapper.as_ref(), forward)
    }

    /// Runs a forward and returns the loss, or a pipeline stage's output.
    pub fn output(&self, t: &Tape, batch: &Batch) -> Tensor {
        let (loss, held) = self.outputs(t, batch);
        drop(held);
        self.run.drop_cache();
        loss
    }

    /// Runs a forward and returns the loss, and the other outputs as whoever called the model gets them.
    pub(super) fn outputs(&self, t: &Tape, batch: &Batch) -> (Tensor, Vec<Tensor>) {
        let Output { mut loss, held } = self.wrapped(t, || {
            t.autocast(self.autocast, || self.forward.loss(t, &self.run, batch))
        });
        // Logits, of which the trainer computes the loss.
        let are_logits = batch.kept.is_some() && batch.labels.is_none();
        if self.run.setup.trainer == TrainerKind::Transformers && !are_logits {
            // A sum, divided by `num_items_in_batch` (`fixed_cross_entropy`).
            loss = t.scale(&loss);
        }
        let is_converted = self.run.setup.trainer.converts_outputs() && self.autocast.is_some();
        if is_converted && are_logits {
            loss = t.to_dtype(&loss, DType::F32);
        }
        let held: Vec<Tensor> = match is_converted {
            // accelerate's `convert_outputs_to_fp32`
            true => {
                let converted = held.iter().map(|x| t.to_dtype(x, DType::F32)).collect();
                drop(held);
                converted
            }
            false => held,
        };
        let held = match &self.wrapper {
            Some(wrapper) if are_logits => {
                loss = wrapper.wrapped_logits(t, loss);
                wrapper.wrapped_outputs(t, None, held)
            }
            Some(wrapper) => wrapper.wrapped_outputs(t, Some(&loss), held),
            None => held,
        };
        (loss, held)
    }
}
