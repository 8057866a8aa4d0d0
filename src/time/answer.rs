//! The time of a step as scripts read it.

use serde::{Deserialize, Serialize};

use super::bottleneck::Bottleneck;
use super::cost::Costs;
use super::expense::{Bill, Expense};
use super::pipeline::Bar;
use super::roofline::{Point, Roof, points};
use super::run::{Run, RunTime};
use super::several::{Together, Way};
use super::step::{Bound, Share, StepTime};
use super::timeline::Phase;
use vramscope_engine::order::sort_by;
use vramscope_engine::{Setup, report};

/// Milliseconds of each phase, as CUDA events measure them: of the last micro-batch, and the update.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Milliseconds {
    /// From the inputs to the loss.
    pub forward: f64,
    /// From the loss to the gradients.
    pub backward: f64,
    /// Clipping, scaler, optimizer and `zero_grad`.
    pub optimizer: f64,
}

/// Where the time of a step goes.
#[derive(Debug, Clone, Serialize)]
pub struct TimeAnswer<'a> {
    /// The whole step, all micro-batches, once its data is there.
    pub step_ms: f64,
    /// Samples a second, of all GPUs, with the wait for data.
    pub samples_per_s: f64,
    /// Text positions a second, image tokens included; absent for models without text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_s: Option<f64>,
    /// Operations of matrix products and attention over the card's highest rate.
    pub flops_utilisation: f64,
    /// Share of the step in which the GPU computes nothing.
    pub gpu_idle_share: f64,
    /// What the step waits for.
    pub bound: Bound,
    /// The step if the host issued everything at once (CUDA graphs come near).
    pub step_ms_without_host: f64,
    /// The step if kernels took no time.
    pub step_ms_without_gpu: f64,
    /// What goes between GPUs, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub communication: Option<CommunicationAnswer>,
    /// This and other ways to train on as many GPUs, fastest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<Way>,
    /// How batches come, where that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataAnswer>,
    /// What the step waits for, the one whose end would shorten it most first.
    pub bottlenecks: Vec<Bottleneck>,
    /// The whole run, where its samples were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Bill>,
    /// Where kernels' times come from.
    pub kernels_from: &'a str,
    /// Where the host's pace comes from.
    pub host_from: &'a str,
    /// GPU time by kind of kernel, longest first.
    pub by_kernel: Vec<Part>,
    /// GPU time by part of the model, longest first.
    pub by_component: Vec<Part>,
    /// The highest rates that kernels reach.
    pub roof: Roof,
    /// Where the step's operations stand under them, longest first.
    pub roofline: Vec<Point>,
}

/// Memory and time of a setup as one document.
#[derive(Debug, Clone, Serialize)]
pub struct Estimate<'a> {
    /// What it takes, where it fits.
    #[serde(flatten)]
    pub memory: report::Answer<'a>,
    /// Milliseconds of each phase; absent where the card's rates are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<Milliseconds>,
    /// Where the time goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeAnswer<'a>>,
}

/// What a step gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throughput {
    /// Samples a second, of all GPUs, with the wait for data.
    pub samples_per_s: f64,
    /// Text positions a second, image tokens included; nothing for models without text.
    pub tokens_per_s: Option<f64>,
    /// Operations of a GPU's matrix products and attention in a step.
    pub flops: f64,
    /// The card's highest rate in the type that they are computed in (operations a second).
    pub peak: f64,
    /// The operations over what the card could do in that time.
    pub flops_utilisation: f64,
}

/// What goes between GPUs in a step, of one of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CommunicationAnswer {
    /// What of it the step waits for: its time less that of the same step if communication took none.
    pub exposed_ms: f64,
    /// All of it, one after the other.
    pub total_ms: f64,
    /// Collectives.
    pub calls: u64,
    /// Bytes that the GPU sends, over a ring.
    pub bytes_sent: u64,
    /// Bytes between the GPU and its host, both ways.
    pub bytes_to_and_from_host: u64,
    /// What a stage of a pipeline waits for others while it fills and drains.
    pub filling_ms: f64,
}

/// How batches come.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DataAnswer {
    /// From one step to the next.
    pub interval_ms: f64,
    /// What of it the GPU waits for data.
    pub wait_ms: f64,
    /// The same as a share.
    pub idle_share: f64,
    /// Processes that prepare batches.
    pub workers: u64,
    /// The fewest that come within 1% of the shortest interval.
    pub best_workers: u64,
    /// The first batches: who does what when.
    pub bars: Vec<Bar>,
}

/// What a run is asked, beside its setup.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// Where kernels and the host's pace come from.
    pub sources: [&'a str; 2],
    /// What the whole run takes and costs.
    pub expense: Expense,
}

/// GPU time of a kind of kernel or a part of the model, of one micro-batch and the update.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// What it is.
    pub name: &'static str,
    /// GPU time.
    pub ms: f64,
    /// Kernels.
    pub launches: u64,
}

impl StepTime {
    /// Milliseconds of each phase.
    pub fn milliseconds(&self) -> Milliseconds {
        let ms = |phase| self.phase(phase).total * 1e3;
        Milliseconds {
            forward: ms(Phase::Forward),
            backward: ms(Phase::Backward),
            optimizer: ms(Phase::Optimizer),
        }
    }

    /// GPU time by kind of kernel, longest first.
    pub fn parts(&self) -> Vec<Part> {
        parts(self.by_class.iter().map(|(name, share)| (*name, share)))
    }

    /// Seconds of a whole step of all its micro-batches, where a phase takes what `of` says.
    fn whole(&self, setup: &Setup, of: impl Fn(Phase) -> f64) -> f64 {
        setup.accum.max(1) as f64 * (of(Phase::Forward) + of(Phase::Backward)) + of(Phase::Optimizer)
    }

    /// Seconds of a whole step, all micro-batches.
    pub fn step_seconds(&self, setup: &Setup) -> f64 {
        self.whole(setup, |phase| self.phase(phase).total)
    }
}

impl Run<'_> {
    /// Where the time goes.
    pub fn answer<'t>(&self, costs: &Costs<'_>, asked: Asked<'t>) -> (Milliseconds, TimeAnswer<'t>) {
        let (time, setup) = (self.time(costs), self.setup());
        let step = self.counted(&time);
        let Throughput {
            samples_per_s,
            tokens_per_s,
            flops_utilisation,
            ..
        } = self.throughput(&time, costs);
        let roof = Roof::of(costs, self.computed_in());
        let answer = TimeAnswer {
            step_ms: time.step * 1e3,
            samples_per_s,
            tokens_per_s,
            flops_utilisation,
            gpu_idle_share: time.together.idle_share(),
            bound: step.bound(),
            step_ms_without_host: step.whole(setup, |phase| step.phase(phase).busy) * 1e3,
            step_ms_without_gpu: step.whole(setup, |phase| step.phase(phase).host) * 1e3,
            communication: (self.gpus() > 1).then(|| communication(&time)),
            ways: self.ways(costs),
            data: self.data(&time),
            bottlenecks: self.bottlenecks(costs),
            run: asked.expense.bill(samples_per_s, self.gpus()),
            kernels_from: asked.sources[0],
            host_from: asked.sources[1],
            by_kernel: step.parts(),
            by_component: parts(step.by_component.iter().map(|(c, share)| (c.label(), share))),
            roof,
            roofline: points(step, roof),
        };
        (step.milliseconds(), answer)
    }

    /// What a step of this time gives.
    pub fn throughput(&self, time: &RunTime, costs: &Costs<'_>) -> Throughput {
        let interval = time.interval();
        let samples_per_s = self.samples() as f64 / interval;
        let flops = self.repeated() as f64 * self.counted(time).all.flops;
        let peak = costs.rates.peak(self.computed_in());
        Throughput {
            samples_per_s,
            tokens_per_s: (self.setup().seq > 0).then_some(samples_per_s * self.setup().seq as f64),
            flops,
            peak,
            flops_utilisation: flops / (interval * peak),
        }
    }

    /// How batches come, where that was said.
    pub fn data(&self, time: &RunTime) -> Option<DataAnswer> {
        let (flow, workers) = (time.flow.as_ref()?, self.workers()?);
        Some(DataAnswer {
            interval_ms: time.interval() * 1e3,
            wait_ms: time.data_wait() * 1e3,
            idle_share: time.data_wait() / time.interval(),
            workers,
            best_workers: self.best_workers(time, MOST_WORKERS)?,
            bars: flow.bars.clone(),
        })
    }
}

/// More workers than this are not looked at.
const MOST_WORKERS: u64 = 32;

fn communication(time: &RunTime) -> CommunicationAnswer {
    let Together { traffic, exposed, .. } = &time.together;
    CommunicationAnswer {
        exposed_ms: exposed * 1e3,
        total_ms: traffic.seconds * 1e3,
        calls: traffic.calls,
        bytes_sent: traffic.bytes as u64,
        bytes_to_and_from_host: traffic.host_bytes as u64,
        filling_ms: time.together.waiting * 1e3,
    }
}

fn parts<'a>(shares: impl Iterator<Item = (&'static str, &'a Share)>) -> Vec<Part> {
    let mut out: Vec<Part> = shares
        .map(|(name, share)| Part {
            name,
            ms: share.seconds * 1e3,
            launches: share.launches,
        })
        .collect();
    sort_by(&mut out, |a, b| b.ms.total_cmp(&a.ms));
    out
}
