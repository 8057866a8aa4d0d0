//! Two lines: the host that issues, the GPU that works through.

use std::collections::VecDeque;

use super::cost::{Costs, Price};
use vramscope_engine::tape::work::{Chore, Item, Launch};

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

/// Items that come once.
pub(super) fn once(items: &[Item]) -> impl Iterator<Item = (&[Item], u64)> {
    std::iter::once((items, 1))
}

/// What an item that is repeated takes, in seconds.
#[derive(Debug)]
enum Step {
    Host(f64),
    Kernel(f64),
    /// The host waits for the GPU.
    Wait,
    /// All of these, so many times.
    Repeat(Round, u64),
}

/// Steps that come again and again.
#[derive(Debug, Default)]
struct Round {
    steps: Vec<Step>,
    /// Kernels in it.
    kernels: u64,
}

impl Round {
    fn push(&mut self, step: Step) {
        self.kernels += match &step {
            Step::Kernel(_) => 1,
            Step::Repeat(round, times) => round.kernels * times,
            Step::Host(_) | Step::Wait => 0,
        };
        self.steps.push(step);
    }
}

/// Both lines at the end of a round.
struct Seen {
    lines: Lines,
    time: PhaseTime,
}

/// Seconds by which a round may differ from the one before and count as the same.
const SAME: f64 = 1e-11;

/// Both lines so far, in seconds from the begin of the step.
#[derive(Default, Clone)]
pub(super) struct Lines {
    /// When each kernel in flight is done.
    queue: VecDeque<f64>,
    /// When the host is done with what it was told so far.
    pub host: f64,
    /// When the GPU is.
    pub gpu: f64,
    /// In an optimizer, what it turns to one parameter for covers the launches.
    in_optimizer: bool,
    /// Whether rounds that pass as those before are summed instead of gone through.
    is_summed: bool,
}

impl Lines {
    /// Lines that go through rounds until each passes as the one before, and no further: within rounding the same.
    pub fn summed() -> Self {
        Self {
            is_summed: true,
            ..Self::default()
        }
    }

    /// Runs a phase: items in order, each part so many times; `seen` is told of every kernel, its time, and how often
    /// it runs.
    pub fn phase<'w>(
        &mut self,
        phase: Phase,
        parts: impl Iterator<Item = (&'w [Item], u64)>,
        costs: &Costs<'_>,
        mut seen: impl FnMut(&Launch, f64, u64),
    ) -> PhaseTime {
        let begin = self.now(costs);
        let mut out = PhaseTime::default();
        self.work(costs.pace.phase(phase), &mut out);
        for (items, times) in parts {
            self.repeat(items, times, costs, &mut out, &mut seen);
        }
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
                    self.work(costs.chore(*chore), out);
                }
            }
            Item::Repeat(items, times) => self.repeat(items, *times, costs, out, seen),
        }
    }

    /// Items in order, all of them so many times.
    fn repeat(
        &mut self,
        items: &[Item],
        times: u64,
        costs: &Costs<'_>,
        out: &mut PhaseTime,
        seen: &mut dyn FnMut(&Launch, f64, u64),
    ) {
        if times == 1 {
            return self.run(items, costs, out, seen);
        }
        let round = self.price(items, times, costs, seen);
        self.play(&round, times, costs, out);
    }

    /// What each of some items takes, one after the other, of which all run so many times.
    fn price(&self, items: &[Item], times: u64, costs: &Costs<'_>, seen: &mut dyn FnMut(&Launch, f64, u64)) -> Round {
        let mut round = Round::default();
        for item in items {
            match item {
                Item::Launch(launch) => {
                    let Price { host, gpu } = costs.price(launch);
                    seen(launch, gpu, times);
                    if !self.in_optimizer {
                        round.push(Step::Host(host));
                    }
                    round.push(Step::Kernel(gpu));
                }
                Item::Chore(chore) => {
                    if *chore == Chore::Wait {
                        round.push(Step::Wait);
                    }
                    if self.waits_for(*chore) {
                        round.push(Step::Host(costs.chore(*chore)));
                    }
                }
                Item::Repeat(items, inner) => {
                    round.push(Step::Repeat(self.price(items, times * inner, costs, seen), *inner));
                }
            }
        }
        round
    }

    /// A round so many times.
    fn play(&mut self, round: &Round, times: u64, costs: &Costs<'_>, out: &mut PhaseTime) {
        // The lines are compared when as many kernels have passed as wait at most: it takes as long as these.
        let apart = (QUEUE as u64).div_ceil(round.kernels.max(1));
        let mut before: Option<Seen> = None;
        let mut left = times;
        while left > 0 {
            for step in &round.steps {
                self.step(step, costs, out);
            }
            left -= 1;
            if !self.is_summed || left < apart || !(times - left).is_multiple_of(apart) {
                continue;
            }
            if let Some(before) = before.as_ref().filter(|before| self.is_like(&before.lines)) {
                self.skip(left / apart, before, out);
                left %= apart;
            }
            before = Some(Seen {
                lines: self.clone(),
                time: *out,
            });
        }
    }

    /// Whether everything lies as it lay then, but later.
    fn is_like(&self, then: &Self) -> bool {
        let close = |now: f64, before: f64| ((now - self.gpu) - (before - then.gpu)).abs() < SAME;
        let mut queues = self.queue.iter().zip(&then.queue);
        close(self.host, then.host)
            && self.queue.len() == then.queue.len()
            && queues.all(|(&now, &was)| close(now, was))
    }

    /// So many times more what has passed since then.
    fn skip(&mut self, times: u64, then: &Seen, out: &mut PhaseTime) {
        let later = (self.gpu - then.lines.gpu) * times as f64;
        self.host += later;
        self.gpu += later;
        self.queue.iter_mut().for_each(|done| *done += later);
        out.busy += (out.busy - then.time.busy) * times as f64;
        out.host += (out.host - then.time.host) * times as f64;
        out.launches += (out.launches - then.time.launches) * times;
    }

    /// Whether the host takes its time for a chore: in an optimizer, what it turns to one parameter for covers the
    /// rest.
    fn waits_for(&self, chore: Chore) -> bool {
        !self.in_optimizer || matches!(chore, Chore::Step(_) | Chore::Parameter(..))
    }

    fn step(&mut self, step: &Step, costs: &Costs<'_>, out: &mut PhaseTime) {
        match step {
            Step::Host(seconds) => self.work(*seconds, out),
            Step::Wait => self.host = self.host.max(self.gpu),
            Step::Kernel(seconds) => self.kernel(*seconds, costs, out),
            Step::Repeat(round, times) => self.play(round, *times, costs, out),
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
