//! Time of a step, and its breakdown by kernel and part of the model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cost::Costs;
use super::tally::Tally;
use super::timeline::{Lines, Phase, PhaseTime, once};
use vramscope_engine::simulate::{Recording, SimulateError, Work, record_work};
use vramscope_engine::tape::work::WorkItem;
use vramscope_engine::tape::{Component, Gpu};
use vramscope_engine::{Model, Setup};

/// The side that limits a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The GPU is busy most of the time.
    Gpu,
    /// The host issues operations more slowly than the GPU executes them.
    Host,
}

/// GPU time and work of some kernels.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Share {
    /// Seconds.
    pub seconds: f64,
    /// Number of kernel launches.
    pub launches: u64,
    /// Floating-point operations of matrix products.
    pub flops: f64,
    /// Bytes read and written.
    pub bytes: f64,
}

/// Time of a steady step, after the first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepTime {
    /// Time of each phase.
    pub phases: BTreeMap<Phase, PhaseTime>,
    /// GPU time by kind of kernel, sorted by name.
    pub by_class: Vec<(&'static str, Share)>,
    /// GPU time by part of the model.
    pub by_component: Vec<(Component, Share)>,
    /// GPU time by kind of kernel in each part of the model.
    pub operations: Vec<((&'static str, Component), Share)>,
    /// All kernels.
    pub all: Share,
}

/// Estimates the time of a steady step of a setup on a GPU of this shape.
///
/// # Errors
/// Those of [`simulate`](vramscope_engine::simulate()).
pub fn estimate(model: &Model, setup: &Setup, gpu: Gpu, costs: &Costs<'_>) -> Result<StepTime, SimulateError> {
    Ok(step(&record_work(model, setup, gpu)?, costs))
}

/// Time of a recorded step.
pub fn step(recording: &Recording, costs: &Costs<'_>) -> StepTime {
    let mut tally = Tally::default();
    let mut lines = Lines::default();
    let work = &recording.work;
    let parts = [work.forward(), work.backward(), work.optimizer()];
    for (phase, items) in Phase::ALL.into_iter().zip(parts) {
        let time = lines.phase(phase, once(items), costs, |launch, seconds, times| {
            tally.count(&recording.log, phase, launch, (seconds, times));
        });
        tally.phases.insert(phase, time);
    }
    tally.step()
}

/// Seconds of forward, backward and update, without a breakdown, for frequent calls. The update has separate costs,
/// since the host may handle another kind of tensor there.
pub fn seconds(work: &Work, costs: &Costs<'_>, of_update: &Costs<'_>) -> [f64; 3] {
    let mut passes = Passes::of(work.phases(), costs);
    let [forward, backward] = passes.seconds;
    [forward, backward, passes.update(work.optimizer(), of_update)]
}

/// Seconds of queued work that keep the GPU busy for longer than any host takes for an update.
const GPU_BACKLOG: f64 = 1e3;

/// State after forward and backward, from which any update can continue.
#[derive(Clone, Default)]
pub struct Passes {
    /// Seconds of forward and of backward.
    pub seconds: [f64; 2],
    lines: Lines,
}

impl Passes {
    /// Runs forward and backward, each given as items with the number of repetitions.
    pub fn of<'w, P: Iterator<Item = (&'w [WorkItem], u64)>>([forward, backward]: [P; 2], costs: &Costs<'_>) -> Self {
        let mut lines = Lines::summed();
        let phases = [(Phase::Forward, forward), (Phase::Backward, backward)];
        let seconds = phases.map(|(phase, parts)| lines.phase(phase, parts, costs, |_, _, _| {}).total);
        Self { seconds, lines }
    }

    /// State in which the GPU is behind the host: its queued work lasts longer than the host takes for any update.
    pub fn with_gpu_backlog() -> Self {
        let mut passes = Self::default();
        passes.lines.gpu = GPU_BACKLOG;
        passes
    }

    /// Seconds of an update that follows.
    pub fn update(&mut self, update: &[WorkItem], costs: &Costs<'_>) -> f64 {
        self.lines
            .phase(Phase::Optimizer, once(update), costs, |_, _, _| {})
            .total
    }
}

impl StepTime {
    /// Seconds of the whole step.
    pub fn total(&self) -> f64 {
        self.phases.values().map(|p| p.total).sum()
    }

    /// Seconds of forward and backward.
    pub fn without_update(&self) -> f64 {
        self.total() - self.phase(Phase::Optimizer).total
    }

    /// Time of one phase.
    pub fn phase(&self, phase: Phase) -> PhaseTime {
        self.phases.get(&phase).copied().unwrap_or_default()
    }

    /// Share of the step in which the GPU computes nothing.
    pub fn idle_share(&self) -> f64 {
        let total = self.total();
        if total > 0.0 {
            (1.0 - self.all.seconds / total).max(0.0)
        } else {
            0.0
        }
    }

    /// The side that limits the step most of the time.
    pub fn bound(&self) -> Bound {
        if self.idle_share() > 0.5 {
            Bound::Host
        } else {
            Bound::Gpu
        }
    }
}
