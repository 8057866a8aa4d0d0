//! Runs training steps on the tape.

use std::collections::{HashMap, HashSet};

use crate::dtype::DType;
use crate::model::Model;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{Adapters, Builder, Trained};
use crate::optim::{GradScaler, Optimizer, clip_grad_norm};
use crate::setup::{Freeze, Precision, Setup};
use crate::tape::log::{Event, Log};
use crate::tape::{Gpu, Tape, Tensor};

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
    /// The error that the run would raise.
    pub failure: Option<String>,
}

/// Makes the model and records a step with two optimizer updates.
pub fn record(model: &Model, setup: &Setup, gpu: Gpu) -> Recording {
    let tape = Tape::new(gpu);
    let (forward, params) = build(&tape, model, setup);
    let after_model = tape.mark();
    let count = |f: &dyn Fn(&Tensor) -> bool| params.iter().filter(|p| f(p)).map(Tensor::numel).sum();
    let (total, trainable) = (count(&|_| true), count(&Tensor::requires_grad));
    let mut trainer = Trainer {
        run: Run::new(model, setup),
        optimizer: Optimizer::new(setup.optim, &params),
        scaler: GradScaler::new(setup.precision == Precision::AmpFp16),
        autocast: autocast_dtype(setup.precision),
        tape: tape.clone(),
        forward,
    };
    let parts = trainer.run();
    let failure = tape.failure();
    drop((trainer, params));
    let mut log = tape.finish();
    let mut events = std::mem::take(&mut log.events);
    let (first, steady) = parts.steps(&mut events, log.births.len());
    Recording {
        log,
        build: events[..after_model].to_vec(),
        first,
        steady,
        params: total,
        trainable,
        failure,
    }
}

/// Where the parts of the recorded step begin and end.
struct Parts {
    start: usize,
    before_forward: usize,
    after_forward: usize,
    after_backward: usize,
    dropped: usize,
    first_update: usize,
    second_update: usize,
    end: usize,
}

impl Parts {
    /// The first step has the first update; later steps have the second, and nothing is born in
    /// their forward and backward that outlives them.
    fn steps(&self, events: &mut [Event], births: usize) -> (Step, Step) {
        self.rename(events);
        let forward_backward = &events[self.start..self.dropped];
        let zero_grad = &events[self.second_update..self.end];
        let mut dies = vec![false; births];
        for event in forward_backward.iter().chain(zero_grad).filter(|e| !e.is_birth()) {
            dies[event.storage() as usize] = true;
        }
        let first = Pieces {
            forward_backward,
            update: &events[self.dropped..self.first_update],
            zero_grad,
        };
        let steady = Pieces {
            update: &events[self.first_update..self.second_update],
            ..first
        };
        (
            self.step(&first, |_| true),
            self.step(&steady, |e| !e.is_birth() || dies[e.storage() as usize]),
        )
    }

    /// A state that the second update makes anew, dropping the first update's, keeps one name: a
    /// later step then replaces its own.
    fn rename(&self, events: &mut [Event]) {
        let second = &events[self.first_update..self.second_update];
        let ids = |birth: bool| {
            second
                .iter()
                .filter(move |e| e.is_birth() == birth)
                .map(|e| e.storage())
        };
        let (born, died): (HashSet<u32>, HashSet<u32>) = (ids(true).collect(), ids(false).collect());
        let outlive = ids(true).filter(|id| !died.contains(id));
        let old: HashMap<u32, u32> = ids(false).filter(|id| !born.contains(id)).zip(outlive).collect();
        if old.is_empty() {
            return;
        }
        for event in &mut events[self.dropped..self.second_update] {
            *event = old.get(&event.storage()).map_or(*event, |&id| event.renamed(id));
        }
    }

    fn step(&self, pieces: &Pieces<'_>, keep: impl Fn(&Event) -> bool) -> Step {
        let mut events =
            Vec::with_capacity(pieces.forward_backward.len() + pieces.update.len() + pieces.zero_grad.len());
        let mut at = |mark: usize, from: usize| {
            let kept = pieces.forward_backward[from - self.start..mark - self.start]
                .iter()
                .filter(|e| keep(e));
            events.extend(kept.copied());
            events.len()
        };
        let mut marks = StepMarks {
            before_forward: at(self.before_forward, self.start),
            after_forward: at(self.after_forward, self.before_forward),
            after_backward: at(self.after_backward, self.after_forward),
            ..StepMarks::default()
        };
        at(self.dropped, self.after_backward);
        events.extend_from_slice(pieces.update);
        marks.after_optimizer = events.len();
        events.extend_from_slice(pieces.zero_grad);
        Step { events, marks }
    }
}

#[derive(Clone, Copy)]
struct Pieces<'a> {
    forward_backward: &'a [Event],
    update: &'a [Event],
    zero_grad: &'a [Event],
}

fn build(tape: &Tape, model: &Model, setup: &Setup) -> (Box<dyn Forward>, Vec<Tensor>) {
    let dtype = if setup.precision == Precision::Bf16 {
        DType::Bf16
    } else {
        DType::F32
    };
    let builder = Builder::new(
        tape,
        Trained {
            freeze: setup.freeze,
            dtype,
        },
    );
    let forward = model.build(&builder);
    if setup.freeze == Freeze::Lora {
        builder.attach(&Adapters {
            rank: setup.rank,
            dropout: setup.lora_dropout,
            dtype: DType::F32,
        });
    }
    (forward, builder.params())
}

fn autocast_dtype(precision: Precision) -> Option<DType> {
    match precision {
        Precision::Fp32 | Precision::Bf16 => None,
        Precision::AmpBf16 => Some(DType::Bf16),
        Precision::AmpFp16 => Some(DType::F16),
    }
}

struct Trainer {
    tape: Tape,
    forward: Box<dyn Forward>,
    run: Run,
    optimizer: Optimizer,
    scaler: GradScaler,
    autocast: Option<DType>,
}

impl Trainer {
    fn run(&mut self) -> Parts {
        let t = self.tape.clone();
        let start = t.mark();
        let (mut before_forward, mut after_forward, mut after_backward) = (start, start, start);
        for _ in 0..self.run.setup.accum {
            let batch = self.forward.batch(&t, &self.run);
            before_forward = t.mark();
            let loss = self.loss(&t, &batch);
            after_forward = t.mark();
            let scaled = self.scaler.scale(&t, t.scale(&loss));
            t.backward(&scaled);
            drop(scaled);
            after_backward = t.mark();
            drop((loss, batch));
        }
        let dropped = t.mark();
        self.update(&t);
        let first_update = t.mark();
        self.update(&t);
        let second_update = t.mark();
        self.optimizer.zero_grad();
        let end = t.mark();
        Parts {
            start,
            before_forward,
            after_forward,
            after_backward,
            dropped,
            first_update,
            second_update,
            end,
        }
    }

    /// Clipping and the optimizer's step.
    fn update(&mut self, t: &Tape) {
        if self.run.setup.clip {
            clip_grad_norm(t, self.optimizer.params());
        }
        self.scaler.step(t, &mut self.optimizer);
    }

    fn loss(&self, t: &Tape, batch: &Batch) -> Tensor {
        let Output { loss, held } = t.autocast(self.autocast, || self.forward.loss(t, &self.run, batch));
        drop(held);
        loss
    }
}
