//! Runs training steps on the tape.

use super::SimulateError;
use super::build::{Built, build_with, elements};
use super::check::check;
use super::parts::{Parts, Passes};
use super::schedule::Pipeline;
use super::work::{Work, WorkMarks};
use crate::dtype::DType;
use crate::model::Model;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::Builder;
use crate::optim::{Ema, GradScaler, Optimizer, clip_grad_norm};
use crate::setup::{Precision, Setup, ZeroGrad};
use crate::tape::log::{Event, Log, StorageId};
use crate::tape::{Failure, Gpu, Mark, Stage, Tape, Tensor};
use crate::units::Bytes;

/// Positions among the events of one step.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepMarks {
    /// Inputs of the last micro-batch are on the GPU.
    pub before_forward: usize,
    /// Its loss is there, other outputs are dropped.
    pub after_forward: usize,
    /// Its backward is done.
    pub after_backward: usize,
    /// Optimizer and scaler are done.
    pub after_optimizer: usize,
}

/// One step: its events, and where its phases begin.
pub struct Step {
    /// Births and deaths, in order.
    pub events: Vec<Event>,
    /// Positions among them.
    pub marks: StepMarks,
}

impl Step {
    /// Instants at which its figures are read, each with the number of events before it.
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
/// Forward and backward of every step are alike but for what the first one makes to stay: library
/// workspaces, the scaler's state. So they are recorded once, and the optimizer twice.
pub struct Recording {
    /// What each storage is.
    pub log: Log,
    /// Making the model.
    pub build: Vec<Event>,
    /// The first step, in which optimizer states appear.
    pub first: Step,
    /// Every later step.
    pub steady: Step,
    /// Parameters, in elements.
    pub params: u64,
    /// Parameters that are trained, in elements.
    pub trainable: u64,
    /// Each of them that holds memory, and whether it is trained.
    pub parameters: Vec<(StorageId, bool)>,
    /// Storages that are made on another stream than the model runs on.
    pub streams: Vec<(StorageId, u32)>,
    /// Highest live bytes of the stages of a pipeline, where this one was taken because it has the most; it comes first.
    pub stages: Vec<(u64, Bytes)>,
    /// Optimizer states in managed memory, which CUDA moves between host and device.
    pub paged: Bytes,
    /// The error that the run would raise.
    pub failure: Option<Failure>,
    /// What GPU and host do in a later step, where it was asked for.
    pub work: Work,
}

/// Items of work for which there is room at once; more are copied as their list grows.
const USUAL_WORK: usize = 1 << 16;

/// What is written down of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Notes {
    /// What GPU and host do, too.
    pub work: bool,
    /// What the hundreds of segments of an image hold, as its sum: enough to count live bytes, not to play them
    /// through an allocator.
    pub sums: bool,
}

/// What one of several GPUs has of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// GPUs that share the linear maps of a language model; 1 where one has them whole.
    pub group: u64,
    /// The stage of a pipeline that it runs.
    pub stage: Stage,
}

impl Share {
    /// All of it.
    pub const ALONE: Self = Self {
        group: 1,
        stage: Stage::WHOLE,
    };

    /// Has a tape make a model so.
    pub fn set(self, tape: &Tape) {
        tape.set_group(self.group);
        tape.set_stage(self.stage);
    }
}

/// Makes the model and records a step with two optimizer updates.
pub fn record(model: &Model, setup: &Setup, gpu: Gpu) -> Recording {
    record_on(model, setup, &Tape::roomy(gpu))
}

/// As [`record`], with what GPU and host do.
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

/// As [`record`], with these notes.
///
/// # Errors
/// As [`record_work`].
pub fn record_notes(model: &Model, setup: &Setup, gpu: Gpu, notes: Notes) -> Result<Recording, SimulateError> {
    record_shared(model, setup, gpu, (notes, Share::ALONE))
}

/// As [`record_notes`], on one of several GPUs, of what it has of the model.
///
/// # Errors
/// As [`record_work`].
pub(super) fn record_shared(
    model: &Model,
    setup: &Setup,
    gpu: Gpu,
    (notes, share): (Notes, Share),
) -> Result<Recording, SimulateError> {
    check(model, setup)?;
    let tape = Tape::roomy(gpu);
    share.set(&tape);
    if notes.work {
        tape.expect_work(USUAL_WORK);
    }
    if notes.sums {
        tape.sum_segments();
    }
    let recording = record_on(model, setup, &tape);
    match &recording.failure {
        Some(failure) => Err(SimulateError::Fails(failure.clone())),
        None => Ok(recording),
    }
}

/// As [`record`], on this tape.
pub(super) fn record_on(model: &Model, setup: &Setup, tape: &Tape) -> Recording {
    let tape = tape.clone();
    let (mut trainer, params) = Trainer::new(model, setup, &tape);
    let after_model = tape.mark();
    tape.reach(Mark::Model);
    let count = |f: &dyn Fn(&Tensor) -> bool| params.iter().filter(|p| f(p)).map(elements).sum();
    let (total, trainable) = (count(&|_| true), count(&Tensor::requires_grad));
    let parameters = params
        .iter()
        .filter_map(|p| Some((p.storage().id()?, p.requires_grad())))
        .collect();
    drop(params);
    let parts = trainer.run();
    let failure = tape.failure();
    let paged = trainer.optimizer.paged();
    let work = std::mem::take(&mut trainer.work).divide(tape.take_work());
    drop(trainer);
    let mut log = tape.finish();
    let events = std::mem::take(&mut log.events);
    let build = events[..after_model].to_vec();
    let (first, steady) = parts.steps(events);
    Recording {
        log,
        build,
        first,
        steady,
        params: total,
        trainable,
        parameters,
        streams: Vec::new(),
        stages: Vec::new(),
        paged,
        failure,
        work,
    }
}

/// What autocast computes in.
pub(super) fn autocast_dtype(precision: Precision) -> Option<DType> {
    match precision {
        Precision::Fp32 | Precision::Bf16 => None,
        Precision::AmpBf16 => Some(DType::Bf16),
        Precision::AmpFp16 => Some(DType::F16),
    }
}

/// A setup as the model sees it, of which the tape is told what concerns it.
fn prepared(model: &Model, setup: &Setup, tape: &Tape) -> Setup {
    let setup = model.prepared(setup);
    tape.set_autocast_cache(setup.autocast_cache);
    tape.set_padded(setup.is_padded());
    setup
}

fn scaler(setup: &Setup) -> GradScaler {
    GradScaler::new(setup.precision == Precision::AmpFp16)
}

/// A model on the tape, with what trains it.
pub(super) struct Trainer {
    tape: Tape,
    forward: Box<dyn Forward>,
    run: Run,
    pub optimizer: Optimizer,
    scaler: GradScaler,
    autocast: Option<DType>,
    ema: Option<Ema>,
    pub work: WorkMarks,
    /// Where it trains a stage of a pipeline.
    pub pipeline: Option<Box<Pipeline>>,
}

impl Trainer {
    /// Makes the model, and gives its parameters beside.
    pub fn new(model: &Model, setup: &Setup, tape: &Tape) -> (Self, Vec<Tensor>) {
        Self::with(model, setup, tape, Builder::params)
    }

    /// The same, with parameters in the order of `params`.
    pub fn with(model: &Model, setup: &Setup, tape: &Tape, params: fn(&Builder) -> Vec<Tensor>) -> (Self, Vec<Tensor>) {
        let setup = &prepared(model, setup, tape);
        let Built { forward, params, ema } = build_with(tape, model, setup, params);
        let trainer = Self {
            run: Run::new(model, setup),
            optimizer: Optimizer::new(setup.optim, &params),
            scaler: scaler(setup),
            autocast: autocast_dtype(setup.precision),
            tape: tape.clone(),
            forward,
            ema,
            work: WorkMarks::default(),
            pipeline: Pipeline::of(model, setup, tape).map(Box::new),
        };
        (trainer, params)
    }

    /// Turns to another setup that makes the same model ([`Making`]), and lets go of what runs so far have left but
    /// gradients, states and averages.
    ///
    /// [`Making`]: super::build::Making
    pub fn turn_to(&mut self, model: &Model, setup: &Setup) {
        let setup = &prepared(model, setup, &self.tape);
        self.run = Run::new(model, setup);
        self.scaler = scaler(setup);
        self.autocast = autocast_dtype(setup.precision);
    }

    fn run(&mut self) -> Parts {
        let parts = match self.run.setup.zero_grad {
            ZeroGrad::ToNone => self.run_once(),
            ZeroGrad::ToZero => {
                self.tape.hush_follower();
                Parts::Separate([self.step(), self.step()])
            }
        };
        self.tape.revise(|events, births| parts.name_states(events, births));
        self.tape.tell_rest(parts.ends());
        parts
    }

    /// One forward and backward, two updates.
    fn run_once(&mut self) -> Parts {
        let t = self.tape.clone();
        let passes = self.micro_batches(&t);
        t.hush_follower();
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

    /// One step whose gradients stay.
    fn step(&mut self) -> (Passes, usize) {
        let t = self.tape.clone();
        let passes = self.micro_batches(&t);
        self.update(&t);
        (passes, t.mark())
    }

    /// Forward and backward of each micro-batch of a step.
    pub fn micro_batches(&mut self, t: &Tape) -> Passes {
        if let Some(pipeline) = self.pipeline.take() {
            return self.scheduled(t, pipeline);
        }
        let start = t.mark();
        let (mut before_forward, mut after_forward, mut after_backward) = (start, start, start);
        for _ in 0..self.run.setup.accum {
            let batch = self.forward.batch(t, &self.run);
            before_forward = t.mark();
            t.reach(Mark::BeforeForward);
            self.work.before_forward = t.work_mark();
            let loss = self.output(t, &batch);
            after_forward = t.mark();
            t.reach(Mark::AfterForward);
            self.work.after_forward = t.work_mark();
            let scaled = self.scaler.scale(t, t.scale(&loss));
            if scaled.requires_grad() {
                t.backward(&scaled);
            } else {
                t.fail(|| Failure::NoGradient);
            }
            drop(scaled);
            after_backward = t.mark();
            t.reach(Mark::AfterBackward);
            self.work.after_backward = t.work_mark();
            drop((loss, batch));
        }
        Passes {
            start,
            before_forward,
            after_forward,
            after_backward,
            end: t.mark(),
        }
    }

    /// Clipping, the optimizer's step, and the moving average.
    pub fn update(&mut self, t: &Tape) {
        self.work.update = t.work_mark();
        if self.run.setup.clip {
            clip_grad_norm(t, self.optimizer.params());
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

    /// What the model gives in the end: the loss, or what a stage of a pipeline passes on.
    pub fn output(&self, t: &Tape, batch: &Batch) -> Tensor {
        let Output { loss, held } = t.autocast(self.autocast, || self.forward.loss(t, &self.run, batch));
        drop(held);
        self.run.drop_cache();
        loss
    }
}
