//! Records one step of a pipeline stage, as the schedules of `torch.distributed.pipelining` run it.

use super::parts::Passes;
use super::steps::Trainer;
use crate::Model;
use crate::dtype::DType;
use crate::model::forward::{Batch, Run};
use crate::nn;
use crate::setup::Setup;
use crate::tape::{Component, Kind, Stage, Tape, Tensor};

/// State that a stage keeps from step to step, and its sizes.
pub(super) struct Pipeline {
    stage: Stage,
    micro_batches: u64,
    /// View of all micro-batches for the forward: a step gets them as one batch.
    whole: Run,
    /// Shape and type of the tensor that goes from stage to stage: [batch, seq, width].
    between: ([u64; 3], DType),
    buffers: Option<Buffers>,
}

/// Receive buffers, one for each micro-batch. The first step makes them, and they stay.
struct Buffers {
    /// Activations of the stage before, as leaves that get a gradient.
    activations: Vec<Tensor>,
    /// Gradients of the activations sent to the stage after.
    gradients: Vec<Tensor>,
}

impl Pipeline {
    /// Makes the pipeline of the tape's stage; `None` if the tape has the whole model.
    pub fn of(model: &Model, setup: &Setup, tape: &Tape) -> Option<Self> {
        let text = model.config.family().support().pipeline;
        let text = text.filter(|_| !tape.stage().is_whole())?;
        let all = Setup {
            batch: setup.batch * setup.accum,
            ..setup.clone()
        };
        // Autocast leaves the tensors between blocks in the type of the weights.
        let dtype = setup.precision.weights();
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
    /// Runs forwards and backwards of a step.
    pub(super) fn scheduled(&mut self, t: &Tape, mut pipeline: Box<Pipeline>) -> Passes {
        let start = t.mark();
        let batch = self.forward().batch(t, &pipeline.whole);
        let before_forward = t.mark();
        self.work.before_forward = t.work_mark();
        let buffers = pipeline.buffers.take().unwrap_or_else(|| pipeline.prepare(t));
        let mut step = ScheduledStep {
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
            replaced: None,
        }
    }
}

/// A step in progress.
struct ScheduledStep<'a> {
    t: &'a Tape,
    trainer: &'a Trainer,
    pipeline: &'a Pipeline,
    buffers: &'a Buffers,
    /// One micro-batch, a view of the whole batch; all are alike.
    chunk: Batch,
    /// `fwd_cache`: the output of each micro-batch's forward, until its backward.
    outputs: Vec<Option<Tensor>>,
    /// Losses of the last stage, until the end of the step.
    losses: Vec<Tensor>,
}

impl ScheduledStep<'_> {
    /// `Schedule1F1B._step_microbatches`; returns the tape and work positions at which the first backward begins.
    ///
    /// The output of the last forward has a variable of its own until the next one returns, and so has the gradient
    /// that the last backward sent.
    fn one_forward_one_backward(&mut self) -> (usize, usize) {
        let all = self.pipeline.micro_batches as usize;
        let warm_up = self.pipeline.stage.in_flight(all as u64) as usize;
        let mut _output = None;
        for _ in 0..warm_up {
            _output = Some(self.forward());
            self.loss();
        }
        let first_backward = (self.t.mark(), self.t.work_mark());
        let mut _sent = None;
        for i in 0..all {
            _sent = self.backward(i);
            if warm_up + i < all {
                _output = Some(self.forward());
                self.loss();
            }
        }
        first_backward
    }

    /// `ScheduleGPipe._step_microbatches`; returns the tape and work positions at which the first backward begins.
    ///
    /// The gradient that the last backward sent has a variable until the next one is received.
    fn all_forward_all_backward(&mut self) -> (usize, usize) {
        let all = self.pipeline.micro_batches as usize;
        let mut _output = None;
        for _ in 0..all {
            _output = Some(self.forward());
            self.loss();
        }
        let first_backward = (self.t.mark(), self.t.work_mark());
        for i in 0..all {
            drop(self.backward(i));
        }
        first_backward
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

    /// `_maybe_compute_loss` of the last forward's output.
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

    /// `backward_one_chunk`: returns the gradient of the stage's input, to be sent.
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
