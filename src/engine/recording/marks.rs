//! Marks of steps and their phases among a run's events.

use super::fault::Fault;
use crate::report::Phase;

/// A step that ran to its end, as numbers of events that come before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub begin: usize,
    pub end: usize,
    /// Start of each stretch of a phase, in order; several micro-batches give several stretches.
    pub stretches: Vec<(usize, Phase)>,
    /// The figures of the last micro-batch: inputs are there, the loss is there, gradients are there.
    pub before_forward: usize,
    pub after_forward: usize,
    pub after_backward: usize,
    /// The optimizer is done.
    pub after_optimizer: usize,
    /// True if an optimizer ran.
    pub updated: bool,
    /// Micro-batches.
    pub micro_batches: u64,
    /// Items of work before the forward, the backward and the update of the last micro-batch, and before the step's end.
    pub work: [usize; 4],
}

/// Steps so far, and the one that runs.
#[derive(Default)]
pub(super) struct Marks {
    steps: Vec<Step>,
    now: Option<Step>,
    /// Forward of a micro-batch began, backward did not.
    in_forward: bool,
    /// Event at which the loss exists and only arithmetic with it follows.
    loss_at: Option<(usize, usize)>,
    /// An instant that lasts until something else than a death follows.
    open: Option<Instant>,
}

#[derive(Clone, Copy)]
enum Instant {
    AfterBackward,
    AfterOptimizer,
}

impl Marks {
    /// A mark, after so many events and items of work.
    pub fn mark(&mut self, name: &str, (at, work): (usize, usize)) -> Result<(), Fault> {
        self.settle((at, work));
        let Some(step) = &mut self.now else {
            if name == "step" {
                self.now = Some(Step {
                    begin: at,
                    before_forward: at,
                    stretches: vec![(at, Phase::Forward)],
                    ..Step::default()
                });
            }
            // Phases of what runs before the first step, or between two, are of no step.
            return match name {
                "step_end" => Err(Fault::Mark(name.into())),
                _ => Ok(()),
            };
        };
        match name {
            "step" => return Err(Fault::Mark(name.into())),
            // Of several, such as one of a reference model first, the last is the one that backward follows.
            "forward" => {
                step.before_forward = at;
                step.work[0] = work;
                if !self.in_forward {
                    step.stretches.push((at, Phase::Forward));
                }
                self.in_forward = true;
                self.loss_at = None;
            }
            "backward" => {
                self.in_forward = false;
                let (loss_at, loss_work) = self.loss_at.unwrap_or((at, work));
                step.after_forward = loss_at.max(step.before_forward);
                step.after_backward = at;
                step.work = [step.work[0], loss_work.max(step.work[0]), work, work];
                step.micro_batches += 1;
                step.stretches.push((step.after_forward, Phase::Backward));
            }
            "backward_end" => self.open = Some(Instant::AfterBackward),
            "optimizer" => step.updated = true,
            "optimizer_end" => self.open = Some(Instant::AfterOptimizer),
            "step_end" => self.end((at, work)),
            _ => {}
        }
        Ok(())
    }

    /// An operation comes after so many events and items of work; `of_loss` if all that it reads and writes are single
    /// numbers.
    pub fn operation(&mut self, (at, work): (usize, usize), of_loss: bool) {
        self.settle((at, work));
        match of_loss {
            true => self.loss_at = self.loss_at.or(Some((at, work))),
            false => self.loss_at = None,
        }
    }

    /// Something else than a death follows.
    pub fn settle(&mut self, (at, work): (usize, usize)) {
        let (Some(step), Some(open)) = (&mut self.now, self.open.take()) else {
            return;
        };
        match open {
            Instant::AfterBackward => {
                step.after_backward = at;
                step.work[2] = work;
                step.stretches.push((at, Phase::Optimizer));
            }
            Instant::AfterOptimizer => step.after_optimizer = at,
        }
    }

    fn end(&mut self, (at, work): (usize, usize)) {
        self.in_forward = false;
        let Some(mut step) = self.now.take() else { return };
        step.work[3] = work;
        if step.after_optimizer == 0 {
            step.after_optimizer = at;
        }
        step.end = at;
        let ran = step.begin <= step.before_forward
            && step.before_forward <= step.after_forward
            && step.after_forward <= step.after_backward
            && step.after_backward <= step.after_optimizer
            && step.after_optimizer <= at;
        if ran && step.after_backward > step.begin {
            self.steps.push(step);
        }
    }

    /// Steps that ran to their end.
    pub fn finish(self) -> Vec<Step> {
        self.steps
    }
}
