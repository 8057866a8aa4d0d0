//! Where steps and their phases begin and end among a run's events.

use super::fault::Fault;
use crate::report::Phase;

/// A step that ran to its end, as numbers of events that come before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub begin: usize,
    pub end: usize,
    /// Where each stretch of a phase begins, in order; there are several with several micro-batches.
    pub stretches: Vec<(usize, Phase)>,
    /// The figures of the last micro-batch: inputs are there, the loss is there, gradients are there.
    pub before_forward: usize,
    pub after_forward: usize,
    pub after_backward: usize,
    /// The optimizer is done.
    pub after_optimizer: usize,
    /// Whether an optimizer ran.
    pub updated: bool,
}

/// Steps so far, and the one that runs.
#[derive(Default)]
pub(super) struct Marks {
    steps: Vec<Step>,
    now: Option<Step>,
    /// Forward of a micro-batch began, backward did not.
    in_forward: bool,
    /// Where the loss is there, and arithmetic with it alone follows.
    loss_at: Option<usize>,
    /// An instant that lasts until something else than a death follows.
    open: Option<Instant>,
}

#[derive(Clone, Copy)]
enum Instant {
    AfterBackward,
    AfterOptimizer,
}

impl Marks {
    /// A mark, after so many events.
    pub fn mark(&mut self, name: &str, at: usize) -> Result<(), Fault> {
        self.settle(at);
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
            "forward" if !self.in_forward => {
                self.in_forward = true;
                step.before_forward = at;
                step.stretches.push((at, Phase::Forward));
            }
            "backward" => {
                self.in_forward = false;
                step.after_forward = self.loss_at.unwrap_or(at).max(step.before_forward);
                step.after_backward = at;
                step.stretches.push((step.after_forward, Phase::Backward));
            }
            "backward_end" => self.open = Some(Instant::AfterBackward),
            "optimizer" => step.updated = true,
            "optimizer_end" => self.open = Some(Instant::AfterOptimizer),
            "step_end" => self.end(at),
            _ => {}
        }
        Ok(())
    }

    /// An operation comes after so many events; `of_loss` if all that it reads and writes are single numbers.
    pub fn operation(&mut self, at: usize, of_loss: bool) {
        self.settle(at);
        match of_loss {
            true => self.loss_at = self.loss_at.or(Some(at)),
            false => self.loss_at = None,
        }
    }

    /// Something else than a death follows.
    pub fn settle(&mut self, at: usize) {
        let (Some(step), Some(open)) = (&mut self.now, self.open.take()) else {
            return;
        };
        match open {
            Instant::AfterBackward => {
                step.after_backward = at;
                step.stretches.push((at, Phase::Optimizer));
            }
            Instant::AfterOptimizer => step.after_optimizer = at,
        }
    }

    fn end(&mut self, at: usize) {
        self.in_forward = false;
        let Some(mut step) = self.now.take() else { return };
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
