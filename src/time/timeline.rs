//! Simulates two timelines: the host issues operations, the GPU executes them.

use std::collections::VecDeque;

use super::cost::{Costs, Price};
use vramscope_engine::tape::work::{HostOp, Launch, WorkItem};

/// A phase of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Forward.
    Forward,
    /// Backward.
    Backward,
    /// Gradient clipping, grad scaler and optimizer.
    Optimizer,
}

impl Phase {
    /// All phases in order.
    pub const ALL: [Self; 3] = [Self::Forward, Self::Backward, Self::Optimizer];
}

/// Time of one phase, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PhaseTime {
    /// Time on the GPU from the phase's start to its end, as CUDA events measure it.
    pub total: f64,
    /// Time in which the GPU computes.
    pub busy: f64,
    /// Time in which the host works.
    pub host: f64,
    /// Number of kernel launches.
    pub launches: u64,
}

/// Number of kernels that may be issued ahead of the GPU; a further launch blocks until one of them is done ("the
/// launch queue has a depth of about 1024", NVIDIA's developer forum). Traces of the reference machine show up to 836
/// in flight, never more than this.
const QUEUE: usize = 1024;

/// Times some work alone on an idle GPU, as events around it would measure it.
pub fn span(items: &[WorkItem], costs: &Costs<'_>) -> PhaseTime {
    let (mut lines, mut out) = (Lines::default(), PhaseTime::default());
    lines.run(items, costs, &mut out, &mut |_, _, _| {});
    out.total = lines.now(costs) - costs.pace.latency();
    out
}

/// Items that run once.
pub(super) fn once(items: &[WorkItem]) -> impl Iterator<Item = (&[WorkItem], u64)> {
    std::iter::once((items, 1))
}

/// Step of a repeated sequence, with its seconds.
#[derive(Debug)]
enum TimelineEntry {
    Host(f64),
    Kernel(f64),
    /// The host synchronises with the GPU.
    Wait,
    /// A nested sequence and its number of repetitions.
    Repeat(Round, u64),
}

/// A sequence of steps that is repeated.
#[derive(Debug, Default)]
struct Round {
    steps: Vec<TimelineEntry>,
    /// Number of kernels in it.
    kernels: u64,
}

impl Round {
    fn push(&mut self, step: TimelineEntry) {
        self.kernels += match &step {
            TimelineEntry::Kernel(_) => 1,
            TimelineEntry::Repeat(round, times) => round.kernels * times,
            TimelineEntry::Host(_) | TimelineEntry::Wait => 0,
        };
        self.steps.push(step);
    }
}

/// State of both timelines at the end of a round.
struct Seen {
    lines: Lines,
    time: PhaseTime,
}

/// Difference in seconds below which two rounds count as equal.
const SAME: f64 = 1e-11;

/// State of both timelines, in seconds from the start of the step.
#[derive(Default, Clone)]
pub(super) struct Lines {
    /// End of each kernel in flight.
    queue: VecDeque<f64>,
    /// Time at which the host is done with everything so far.
    pub host: f64,
    /// Time at which the GPU is done with everything so far.
    pub gpu: f64,
    /// True in an optimizer, where the host's time per parameter already includes its launches.
    in_optimizer: bool,
    /// True if rounds equal to the one before are skipped by multiplication instead of simulated.
    is_summed: bool,
}

impl Lines {
    /// Timelines that simulate repeated rounds only until two are equal; the result is the same up to rounding.
    pub fn summed() -> Self {
        Self {
            is_summed: true,
            ..Self::default()
        }
    }

    /// Runs a phase, given as items with the number of repetitions. `seen` is called for every kernel with its seconds
    /// and repetitions.
    pub fn phase<'w>(
        &mut self,
        phase: Phase,
        parts: impl Iterator<Item = (&'w [WorkItem], u64)>,
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

    fn run(
        &mut self,
        items: &[WorkItem],
        costs: &Costs<'_>,
        out: &mut PhaseTime,
        seen: &mut dyn FnMut(&Launch, f64, u64),
    ) {
        for item in items {
            self.item(item, costs, out, seen);
        }
    }

    /// Runs the next item.
    pub fn item(
        &mut self,
        item: &WorkItem,
        costs: &Costs<'_>,
        out: &mut PhaseTime,
        seen: &mut dyn FnMut(&Launch, f64, u64),
    ) {
        match item {
            WorkItem::Launch(launch) => {
                let Price { host, gpu, .. } = costs.price(launch);
                if !self.in_optimizer {
                    self.work(host, out);
                }
                self.kernel(gpu, costs, out);
                seen(launch, gpu, 1);
            }
            WorkItem::HostOp(host_op) => {
                self.in_optimizer |= matches!(host_op, HostOp::Step(_));
                self.in_optimizer &= !matches!(host_op, HostOp::Hook(..));
                if *host_op == HostOp::Wait {
                    self.host = self.host.max(self.gpu);
                }
                if self.waits_for(*host_op) {
                    self.work(costs.host_op(*host_op), out);
                }
            }
            WorkItem::Repeat(items, times) => self.repeat(items, *times, costs, out, seen),
        }
    }

    /// Runs a sequence of items several times.
    fn repeat(
        &mut self,
        items: &[WorkItem],
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

    /// Prices a sequence of items, which runs `times` times.
    fn price(
        &self,
        items: &[WorkItem],
        times: u64,
        costs: &Costs<'_>,
        seen: &mut dyn FnMut(&Launch, f64, u64),
    ) -> Round {
        let mut round = Round::default();
        for item in items {
            match item {
                WorkItem::Launch(launch) => {
                    let Price { host, gpu, .. } = costs.price(launch);
                    seen(launch, gpu, times);
                    if !self.in_optimizer {
                        round.push(TimelineEntry::Host(host));
                    }
                    round.push(TimelineEntry::Kernel(gpu));
                }
                WorkItem::HostOp(host_op) => {
                    if *host_op == HostOp::Wait {
                        round.push(TimelineEntry::Wait);
                    }
                    if self.waits_for(*host_op) {
                        round.push(TimelineEntry::Host(costs.host_op(*host_op)));
                    }
                }
                WorkItem::Repeat(items, inner) => {
                    round.push(TimelineEntry::Repeat(
                        self.price(items, times * inner, costs, seen),
                        *inner,
                    ));
                }
            }
        }
        round
    }

    /// Runs a round several times.
    fn play(&mut self, round: &Round, times: u64, costs: &Costs<'_>, out: &mut PhaseTime) {
        // Compare the timelines across as many kernels as the queue holds: a full queue needs this long to reach a
        // steady state.
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

    /// Returns true if the state equals an earlier one up to a shift in time.
    fn is_like(&self, then: &Self) -> bool {
        let close = |now: f64, before: f64| ((now - self.gpu) - (before - then.gpu)).abs() < SAME;
        let mut queues = self.queue.iter().zip(&then.queue);
        close(self.host, then.host)
            && self.queue.len() == then.queue.len()
            && queues.all(|(&now, &was)| close(now, was))
    }

    /// Adds `times` repetitions of everything since `then`.
    fn skip(&mut self, times: u64, then: &Seen, out: &mut PhaseTime) {
        let later = (self.gpu - then.lines.gpu) * times as f64;
        self.host += later;
        self.gpu += later;
        self.queue.iter_mut().for_each(|done| *done += later);
        out.busy += (out.busy - then.time.busy) * times as f64;
        out.host += (out.host - then.time.host) * times as f64;
        out.launches += (out.launches - then.time.launches) * times;
    }

    /// Returns true if the host spends time on this work: in an optimizer, the time per parameter already includes the
    /// rest.
    fn waits_for(&self, host_op: HostOp) -> bool {
        !self.in_optimizer || matches!(host_op, HostOp::Step(_) | HostOp::Parameter(..) | HostOp::OnHost(..))
    }

    fn step(&mut self, step: &TimelineEntry, costs: &Costs<'_>, out: &mut PhaseTime) {
        match step {
            TimelineEntry::Host(seconds) => self.work(*seconds, out),
            TimelineEntry::Wait => self.host = self.host.max(self.gpu),
            TimelineEntry::Kernel(seconds) => self.kernel(*seconds, costs, out),
            TimelineEntry::Repeat(round, times) => self.play(round, *times, costs, out),
        }
    }

    /// Runs the GPU's part of a launch and returns its seconds.
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

    /// Adds the kernel that the GPU ends with now to the queue.
    fn issued(&mut self) {
        self.queue.push_back(self.gpu);
        if self.queue.len() > QUEUE
            && let Some(done) = self.queue.pop_front()
        {
            self.host = self.host.max(done);
        }
    }

    /// Keeps the host busy.
    pub fn work(&mut self, seconds: f64, out: &mut PhaseTime) {
        self.host += seconds;
        out.host += seconds;
    }

    /// Time at which an event recorded now occurs: it waits for its turn like a kernel.
    pub fn now(&self, costs: &Costs<'_>) -> f64 {
        self.gpu.max(self.host + costs.pace.latency())
    }
}
