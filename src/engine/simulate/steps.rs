//! Runs training steps on the tape.

use crate::dtype::DType;
use crate::model::Model;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{Adapters, Builder, Trained};
use crate::optim::{GradScaler, Optimizer, clip_grad_norm};
use crate::setup::{Freeze, Precision, Setup};
use crate::tape::log::Log;
use crate::tape::{Gpu, Tape, Tensor};

/// How many steps are run: the first, in which states appear, and one more. Every later step
/// repeats the second.
pub const STEPS: usize = 2;

/// Positions among the events of one step.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepMarks {
    /// The step begins.
    pub start: usize,
    /// Inputs of the last micro-batch are on the GPU.
    pub before_forward: usize,
    /// Its loss is there, other outputs are dropped.
    pub after_forward: usize,
    /// Its backward is done.
    pub after_backward: usize,
    /// Optimizer and scaler are done.
    pub after_optimizer: usize,
    /// Gradients are dropped.
    pub end: usize,
}

/// A recorded run.
pub struct Recording {
    /// Births and deaths.
    pub log: Log,
    /// The model is made.
    pub after_model: usize,
    /// Marks of each step.
    pub steps: [StepMarks; STEPS],
    /// Parameters, in elements.
    pub params: u64,
    /// Parameters that are trained, in elements.
    pub trainable: u64,
    /// The error that the run would raise.
    pub failure: Option<String>,
}

/// Makes the model and runs [`STEPS`] steps.
pub fn record(model: &Model, setup: &Setup, gpu: Gpu) -> Recording {
    let tape = Tape::new(gpu);
    let (forward, params) = build(&tape, model, setup);
    let after_model = tape.mark();
    let count = |f: &dyn Fn(&Tensor) -> bool| params.iter().filter(|p| f(p)).map(Tensor::numel).sum();
    let (total, trainable) = (count(&|_| true), count(&Tensor::requires_grad));
    let mut trainer = Trainer {
        run: Run::new(setup),
        optimizer: Optimizer::new(setup.optim, &params),
        scaler: GradScaler::new(setup.precision == Precision::AmpFp16),
        autocast: autocast_dtype(setup.precision),
        tape: tape.clone(),
        forward,
    };
    let mut steps = [StepMarks::default(); STEPS];
    for marks in &mut steps {
        *marks = trainer.step();
    }
    let failure = tape.failure();
    drop(trainer);
    drop(params);
    Recording {
        log: tape.finish(),
        after_model,
        steps,
        params: total,
        trainable,
        failure,
    }
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
    fn step(&mut self) -> StepMarks {
        let t = self.tape.clone();
        let mut marks = StepMarks {
            start: t.mark(),
            ..StepMarks::default()
        };
        for _ in 0..self.run.setup.accum {
            let batch = self.forward.batch(&t, &self.run);
            marks.before_forward = t.mark();
            let loss = self.loss(&t, &batch);
            marks.after_forward = t.mark();
            let scaled = self.scaler.scale(&t, t.scale(&loss));
            t.backward(&scaled);
            drop(scaled);
            marks.after_backward = t.mark();
            drop((loss, batch));
        }
        if self.run.setup.clip {
            clip_grad_norm(&t, self.optimizer.params());
        }
        self.scaler.step(&t, &mut self.optimizer);
        marks.after_optimizer = t.mark();
        self.optimizer.zero_grad();
        marks.end = t.mark();
        marks
    }

    fn loss(&self, t: &Tape, batch: &Batch) -> Tensor {
        let Output { loss, held } = t.autocast(self.autocast, || self.forward.loss(t, &self.run, batch));
        drop(held);
        loss
    }
}
