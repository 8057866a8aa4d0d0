//! One step of a stage of a pipeline, as the schedules of `torch.distributed.pipelining` run it.

use super::parts::Passes;
use super::steps::Trainer;
use crate::Model;
use crate::dtype::DType;
use crate::model::forward::{Batch, Run};
use crate::nn;
use crate::setup::{Precision, Setup};
use crate::tape::{Component, Kind, Stage, Tape, Tensor};

/// What a stage keeps from step to step, and what it needs to know.
pub(super) struct Pipeline {
    stage: Stage,
    micro_batches: u64,
    /// The forward's view of all micro-batches together: a step is given them as one batch.
    whole: Run,
    /// What goes from stage to stage: [batch, seq, width].
    between: ([u64; 3], DType),
    buffers: Option<Buffers>,
}

/// What is received, one buffer for each micro-batch. The first step makes them, and they stay.
struct Buffers {
    /// Activations of the stage before, as leaves that get a gradient.
    activations: Vec<Tensor>,
    /// Gradients of what goes to the stage behind.
    gradients: Vec<Tensor>,
}

impl Pipeline {
    /// The stage that the tape is at; none where a model is whole.
    pub fn of(model: &Model, setup: &Setup, tape: &Tape) -> Option<Self> {
        let text = model.pipelined().filter(|_| !tape.stage().is_whole())?;
        let all = Setup {
            batch: setup.batch * setup.accum,
            ..setup.clone()
        };
        let dtype = match setup.precision {
            Precision::Bf16 => DType::Bf16,
            // Autocast leaves what goes from block to block in fp32.
            Precision::Fp32 | Precision::AmpBf16 | Precision::AmpFp16 => DType::F32,
        };
        Some(Self {
            stage: tape.stage(),
            micro_batches: setup.accum,
            whole: Run::new(model, &all),
            between: ([setup.batch, setup.seq, text.hidden], dtype),
            buffers: None,
        })
    }

    /// `_prepare_forward_infra` and `_prepare_backward_infra`.
    fn prepare(&self, t: &Tape) -> Buffers {
        let (shape, dtype) = self.between;
        let make = |wanted: bool, name| {
            let count = if wanted { self.micro_batches } else { 0 };
            t.as_kind(Kind::Input, || {
                (0..count).map(|_| t.empty(shape, dtype, name)).collect()
            })
        };
        let activations: Vec<Tensor> = make(!self.stage.is_first(), "received activations");
        Buffers {
            activations: activations.iter().map(|x| t.require_grad(x)).collect(),
            gradients: make(!self.stage.is_last(), "received gradients"),
        }
    }
}

impl Trainer {
    /// Forwards and backwards of a step.
    pub(super) fn scheduled(&mut self, t: &Tape, mut pipeline: Box<Pipeline>) -> Passes {
        let start = t.mark();
        let batch = self.forward().batch(t, &pipeline.whole);
        let before_forward = t.mark();
        self.work.before_forward = t.work_mark();
        let buffers = pipeline.buffers.take().unwrap_or_else(|| pipeline.prepare(t));
        let mut step = Step {
            t,
            trainer: self,
            pipeline: &pipeline,
            chunk: batch.chunk(t, pipeline.micro_batches),
            outputs: Vec::new(),
            losses: Vec::new(),
            buffers: &buffers,
        };
        let (after_forward, work) = match pipeline.stage.fills_first {
            true => step.all_forward_all_backward(),
            false => step.one_forward_one_backward(),
        };
        let after_backward = t.mark();
        drop((step.losses, step.chunk));
        self.work.after_forward = work;
        self.work.after_backward = t.work_mark();
        drop(batch);
        pipeline.buffers = Some(buffers);
        self.pipeline = Some(pipeline);
        Passes {
            start,
            before_forward,
            after_forward,
            after_backward,
            end: t.mark(),
        }
    }
}

/// A step that is running.
struct Step<'a> {
    t: &'a Tape,
    trainer: &'a Trainer,
    pipeline: &'a Pipeline,
    buffers: &'a Buffers,
    /// A micro-batch: a view of the whole batch, and all are alike.
    chunk: Batch,
    /// `fwd_cache`: what each micro-batch's forward gave, until its backward.
    outputs: Vec<Option<Tensor>>,
    /// Of the last stage, until the step is over.
    losses: Vec<Tensor>,
}

impl Step<'_> {
    /// `Schedule1F1B._step_microbatches`; the answer is where the first backward begins.
    ///
    /// What the last forward gave has a variable of its own until the next one has given something, and so has the
    /// gradient that the last backward sent.
    fn one_forward_one_backward(&mut self) -> (usize, usize) {
        let all = self.pipeline.micro_batches as usize;
        let warm_up = self.pipeline.stage.in_flight(all as u64) as usize;
        let mut _output = None;
        for _ in 0..warm_up {
            _output = Some(self.forward());
            self.loss();
        }
        let turn = (self.t.mark(), self.t.work_mark());
        let mut _sent = None;
        for i in 0..all {
            _sent = self.backward(i);
            if warm_up + i < all {
                _output = Some(self.forward());
                self.loss();
            }
        }
        turn
    }

    /// `ScheduleGPipe._step_microbatches`; the answer is where the first backward begins.
    ///
    /// The gradient that the last backward sent has a variable until the next one is to be received.
    fn all_forward_all_backward(&mut self) -> (usize, usize) {
        let all = self.pipeline.micro_batches as usize;
        let mut _output = None;
        for _ in 0..all {
            _output = Some(self.forward());
            self.loss();
        }
        let turn = (self.t.mark(), self.t.work_mark());
        for i in 0..all {
            drop(self.backward(i));
        }
        turn
    }

    /// `forward_one_chunk` of the next micro-batch.
    fn forward(&mut self) -> Tensor {
        self.chunk.received = self.buffers.activations.get(self.outputs.len()).cloned();
        if let Some(received) = &self.chunk.received {
            self.t.receive(received);
        }
        let output = self.trainer.output(self.t, &self.chunk);
        self.outputs.push(Some(output.clone()));
        output
    }

    /// `_maybe_compute_loss` of what the last forward gave.
    fn loss(&mut self) {
        if let (true, Some(Some(logits)), Some(labels)) =
            (self.pipeline.stage.is_last(), self.outputs.last(), &self.chunk.labels)
        {
            let t = self.t;
            let loss = t.component("", Component::Head, || {
                t.scope("loss", || nn::causal_lm_loss(t, logits, labels))
            });
            self.losses.push(loss);
        }
    }

    /// `backward_one_chunk`: the gradient of what the stage was given, to be sent.
    fn backward(&mut self, i: usize) -> Option<Tensor> {
        let output = self.outputs[i].take();
        match (self.buffers.gradients.get(i), &output) {
            (Some(gradient), Some(output)) => {
                self.t.receive(gradient);
                self.t.backward_from(output, gradient.clone());
            }
            _ => self.t.backward(&self.losses[i]),
        }
        let received = self.buffers.activations.get(i)?;
        let gradient = received.grad();
        received.clear_grad();
        gradient
    }
}
