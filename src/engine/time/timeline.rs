//! Two lines: the host that issues, the GPU that works through.

use std::collections::VecDeque;

use super::cost::{Costs, Price};
use crate::tape::work::{Chore, Item, Launch};

/// A phase of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Forward.
    Forward,
    /// Backward.
    Backward,
    /// Clipping, scaler and optimizer.
    Optimizer,
}

impl Phase {
    /// All, in order.
    pub const ALL: [Self; 3] = [Self::Forward, Self::Backward, Self::Optimizer];
}

/// What one phase takes, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PhaseTime {
    /// From its begin to its end on the GPU, as CUDA events measure it.
    pub total: f64,
    /// The GPU computes.
    pub busy: f64,
    /// The host is at work.
    pub host: f64,
    /// Kernels.
    pub launches: u64,
}

/// Kernels that may be issued ahead of the GPU: a further launch waits until one of them is done ("the
/// launch queue has a depth of about 1024", NVIDIA's developer forum). Traces of the reference machine
/// show up to 836 in flight, never more than this.
const QUEUE: usize = 1024;

/// Some work by itself, on an idle GPU, as events around it measure it.
pub fn span(items: &[Item], costs: &Costs<'_>) -> PhaseTime {
    let (mut lines, mut out) = (Lines::default(), PhaseTime::default());
    lines.run(items, costs, &mut out, &mut |_, _, _| {});
    out.total = lines.now(costs) - costs.pace.latency();
    out
}

/// What an item that is repeated takes, in seconds.
#[derive(Debug, Clone, Copy)]
enum Step {
    Host(f64),
    Kernel(f64),
    /// The host waits for the GPU.
    Wait,
}

/// Both lines so far, in seconds from the begin of the step.
#[derive(Default)]
pub(super) struct Lines {
    /// When each kernel in flight is done.
    queue: VecDeque<f64>,
    /// When the host is done with what it was told so far.
    pub host: f64,
    /// When the GPU is.
    pub gpu: f64,
    /// In an optimizer, what it turns to one parameter for covers the launches.
    in_optimizer: bool,
}

impl Lines {
    /// Runs a phase; `seen` is told of every kernel, its time, and how often it runs.
    pub fn phase(
        &mut self,
        phase: Phase,
        items: &[Item],
        costs: &Costs<'_>,
        mut seen: impl FnMut(&Launch, f64, u64),
    ) -> PhaseTime {
        let begin = self.now(costs);
        let mut out = PhaseTime::default();
        self.work(costs.pace.phase(phase), &mut out);
        self.run(items, costs, &mut out, &mut seen);
        out.total = self.now(costs) - begin;
        out
    }

    fn run(&mut self, items: &[Item], costs: &Costs<'_>, out: &mut PhaseTime, seen: &mut dyn FnMut(&Launch, f64, u64)) {
        for item in items {
            self.item(item, costs, out, seen);
        }
    }

    /// What happens next.
    pub fn item(
        &mut self,
        item: &Item,
        costs: &Costs<'_>,
        out: &mut PhaseTime,
        seen: &mut dyn FnMut(&Launch, f64, u64),
    ) {
        match item {
            Item::Launch(launch) => {
                let Price { host, gpu } = costs.price(launch);
                if !self.in_optimizer {
                    self.work(host, out);
                }
                self.kernel(gpu, costs, out);
                seen(launch, gpu, 1);
            }
            Item::Chore(chore) => {
                self.in_optimizer |= matches!(chore, Chore::Step(_));
                if *chore == Chore::Wait {
                    self.host = self.host.max(self.gpu);
                }
                if self.waits_for(*chore) {
                    self.work(costs.pace.chore(*chore), out);
                }
            }
            Item::Repeat(items, times) => {
                let mut round = Vec::new();
                self.price(items, *times, costs, &mut round, seen);
                for _ in 0..*times {
                    round.iter().for_each(|step| self.step(*step, costs, out));
                }
            }
        }
    }

    /// What each of some items takes, one after the other, of which all run so many times.
    fn price(
        &self,
        items: &[Item],
        times: u64,
        costs: &Costs<'_>,
        round: &mut Vec<Step>,
        seen: &mut dyn FnMut(&Launch, f64, u64),
    ) {
        for item in items {
            match item {
                Item::Launch(launch) => {
                    let Price { host, gpu } = costs.price(launch);
                    seen(launch, gpu, times);
                    round.extend((!self.in_optimizer).then_some(Step::Host(host)));
                    round.push(Step::Kernel(gpu));
                }
                Item::Chore(chore) => {
                    round.extend((*chore == Chore::Wait).then_some(Step::Wait));
                    let host = || Step::Host(costs.pace.chore(*chore));
                    round.extend(self.waits_for(*chore).then(host));
                }
                Item::Repeat(items, inner) => {
                    let from = round.len();
                    self.price(items, times * inner, costs, round, seen);
                    let to = round.len();
                    (1..*inner).for_each(|_| round.extend_from_within(from..to));
                }
            }
        }
    }

    /// Whether the host takes its time for a chore: in an optimizer, what it turns to one parameter for covers the
    /// rest.
    fn waits_for(&self, chore: Chore) -> bool {
        !self.in_optimizer || matches!(chore, Chore::Step(_) | Chore::Parameter(..))
    }

    fn step(&mut self, step: Step, costs: &Costs<'_>, out: &mut PhaseTime) {
        match step {
            Step::Host(seconds) => self.work(seconds, out),
            Step::Wait => self.host = self.host.max(self.gpu),
            Step::Kernel(seconds) => self.kernel(seconds, costs, out),
        }
    }

    /// The GPU's part of a launch: its seconds.
    pub fn launch(&mut self, launch: &Launch, costs: &Costs<'_>, out: &mut PhaseTime) -> f64 {
        let time = costs.kernel(launch);
        self.kernel(time, costs, out);
        time
    }

    fn kernel(&mut self, seconds: f64, costs: &Costs<'_>, out: &mut PhaseTime) {
        self.gpu = self.gpu.max(self.host + costs.pace.latency()) + seconds;
        self.issued();
        out.busy += seconds;
        out.launches += 1;
    }

    /// The kernel that ends at the GPU's present end takes a place in the queue.
    fn issued(&mut self) {
        self.queue.push_back(self.gpu);
        if self.queue.len() > QUEUE
            && let Some(done) = self.queue.pop_front()
        {
            self.host = self.host.max(done);
        }
    }

    /// The host is at work.
    pub fn work(&mut self, seconds: f64, out: &mut PhaseTime) {
        self.host += seconds;
        out.host += seconds;
    }

    /// When an event that is recorded now happens: it waits for its turn as a kernel does.
    pub fn now(&self, costs: &Costs<'_>) -> f64 {
        self.gpu.max(self.host + costs.pace.latency())
    }
}
