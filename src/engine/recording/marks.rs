//! Marks of a run: the events at which steps and their phases begin and end.

use super::fault::Fault;
use crate::report::Phase;

/// Completed step. Its instants are numbers of events that precede them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RecordedStep {
    pub begin: usize,
    pub end: usize,
    /// Beginning of each stretch of a phase, in order; a phase has several if there are several micro-batches.
    pub stretches: Vec<(usize, Phase)>,
    /// Instants of the last micro-batch: the batch is ready, the loss is computed, the gradients are complete.
    pub before_forward: usize,
    pub after_forward: usize,
    pub after_backward: usize,
    /// Instant at which the optimizer is done.
    pub after_optimizer: usize,
    /// Calls of an optimizer.
    pub optimizers: Vec<Update>,
    /// Class of the last optimizer that ran, if it is known.
    pub optimizer_name: Option<String>,
    /// Number of micro-batches.
    pub micro_batches: u64,
    /// Numbers of work items before the forward, backward and update of the last micro-batch, and before the step's
    /// end.
    pub work: [usize; 4],
}

/// Call of an optimizer: the numbers of events and of work items before its begin and its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Update {
    begin: (usize, usize),
    end: (usize, usize),
}

impl Update {
    /// Returns the range of events.
    pub const fn events(&self) -> [usize; 2] {
        [self.begin.0, self.end.0]
    }

    /// Returns the range of work items.
    pub const fn work(&self) -> [usize; 2] {
        [self.begin.1, self.end.1]
    }
}

impl RecordedStep {
    /// Moves all positions.
    pub fn moved(&mut self, event: impl Fn(usize) -> usize, work: impl Fn(usize) -> usize) {
        let events = [
            &mut self.begin,
            &mut self.end,
            &mut self.before_forward,
            &mut self.after_forward,
            &mut self.after_backward,
            &mut self.after_optimizer,
        ];
        events.into_iter().for_each(|at| *at = event(*at));
        self.stretches.iter_mut().for_each(|(at, _)| *at = event(*at));
        self.work.iter_mut().for_each(|at| *at = work(*at));
        for update in &mut self.optimizers {
            for (at, item) in [&mut update.begin, &mut update.end] {
                (*at, *item) = (event(*at), work(*item));
            }
        }
    }
}

/// Completed steps, and the current one.
#[derive(Default)]
pub(super) struct Marks {
    steps: Vec<RecordedStep>,
    now: Option<RecordedStep>,
    /// True between a micro-batch's forward and its backward.
    in_forward: bool,
    /// Events and work items before the first of the latest operations that only compute with the loss.
    loss_at: Option<(usize, usize)>,
    /// Instant that extends over the deallocations that follow it.
    open: Option<Instant>,
    /// Class of the last optimizer that ran.
    optimizer_name: Option<String>,
}

#[derive(Clone, Copy)]
enum Instant {
    AfterBackward,
    AfterOptimizer,
}

/// Maximum number of letters of an optimizer's class.
const MOST_NAME: usize = 60;

impl Marks {
    /// Records a mark after `at` events and `work` items of work.
    pub fn mark(&mut self, name: &str, (at, work): (usize, usize)) -> Result<(), Fault> {
        self.settle((at, work));
        let Some(step) = &mut self.now else {
            if name == "step" {
                self.now = Some(RecordedStep {
                    begin: at,
                    before_forward: at,
                    stretches: vec![(at, Phase::Forward)],
                    ..RecordedStep::default()
                });
            }
            // Phases before the first step or between two belong to no step.
            return match name {
                "step_end" => Err(Fault::Mark(name.into())),
                _ => Ok(()),
            };
        };
        match name {
            "step" => return Err(Fault::Mark(name.into())),
            // If several forwards run, such as one of a reference model first, the last one before backward counts.
            "forward" => {
                step.before_forward = at;
                step.work[0] = work;
                match step.stretches.last_mut() {
                    // What followed the backward made the batch of another micro-batch, and no update.
                    Some((_, phase @ Phase::Optimizer)) if step.optimizers.is_empty() => *phase = Phase::Forward,
                    _ if !self.in_forward => step.stretches.push((at, Phase::Forward)),
                    _ => {}
                }
                self.in_forward = true;
                self.loss_at = None;
            }
            // Numbers that the model computes are a part of its forward.
            "forward_end" => self.loss_at = None,
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
            "optimizer" => step.optimizers.push(Update {
                begin: (at, work),
                end: (at, work),
            }),
            "optimizer_end" => {
                if let Some(update) = step.optimizers.last_mut() {
                    update.end = (at, work);
                }
                self.open = Some(Instant::AfterOptimizer);
            }
            "step_end" => self.end((at, work)),
            _ => {}
        }
        Ok(())
    }

    /// Records the class of an optimizer that is about to run.
    pub fn optimizer(&mut self, name: Option<&str>) {
        self.optimizer_name = name.map(|name| name.chars().take(MOST_NAME).collect());
    }

    /// Records an operation after `at` events and `work` items of work. `single_numbers` is true if it reads and writes
    /// only single numbers, as arithmetic on the loss does.
    pub fn operation(&mut self, (at, work): (usize, usize), single_numbers: bool) {
        self.settle((at, work));
        match single_numbers {
            true => self.loss_at = self.loss_at.or(Some((at, work))),
            false => self.loss_at = None,
        }
    }

    /// Closes the open instant, because something other than a deallocation follows.
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
        step.optimizer_name.clone_from(&self.optimizer_name);
        let ran = step.begin <= step.before_forward
            && step.before_forward <= step.after_forward
            && step.after_forward <= step.after_backward
            && step.after_backward <= step.after_optimizer
            && step.after_optimizer <= at;
        if ran && step.after_backward > step.begin {
            self.steps.push(step);
        }
    }

    /// Returns the completed steps.
    pub fn finish(self) -> Vec<RecordedStep> {
        self.steps
    }
}
