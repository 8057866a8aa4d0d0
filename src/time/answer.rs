//! The time of a step, in the form that scripts read.

use serde::Serialize;

use super::bottleneck::Bottleneck;
use super::cost::Costs;
use super::expense::{Bill, Expense};
use super::milliseconds::Milliseconds;
use super::pipeline::Bar;
use super::roofline::{Point, Roof, points};
use super::run::{RunTime, TimedRun};
use super::several::{ParallelTime, Way};
use super::step::{Bound, Share, StepTime};
use super::timeline::Phase;
use vramscope_engine::Setup;
use vramscope_engine::order::sort_by;
use vramscope_engine::report::AroundDocument;
use vramscope_engine::setup::Parallel;

/// Breakdown of the time of a step.
#[derive(Debug, Clone, Serialize)]
pub struct TimeAnswer<'a> {
    /// Milliseconds of the whole step with all micro-batches, once its data is available.
    pub step_ms: f64,
    /// Shortest and longest milliseconds that such a step should take, nine times in ten; `None` where no spread is known:
    /// for several GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_ms_interval: Option<[f64; 2]>,
    /// Samples per second over all GPUs, including the wait for data.
    pub samples_per_s: f64,
    /// Text positions per second, including image tokens; `None` for models without text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_s: Option<f64>,
    /// Floating-point operations of matrix products and attention, as a share of the card's peak rate.
    pub flops_utilisation: f64,
    /// Share of the step in which the GPU computes nothing.
    pub gpu_idle_share: f64,
    /// The slower side, which limits the step.
    pub bound: Bound,
    /// Milliseconds of the step if the host issued everything at once (CUDA graphs come close).
    pub step_ms_without_host: f64,
    /// Milliseconds of the step if kernels took no time.
    pub step_ms_without_gpu: f64,
    /// Communication between GPUs; `None` for one GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub communication: Option<CommunicationAnswer>,
    /// This and other strategies for the same number of GPUs, fastest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<Way>,
    /// Data loading, if it was described.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataAnswer>,
    /// Resources that the step waits for, the one whose removal saves most first.
    pub bottlenecks: Vec<Bottleneck>,
    /// Time and cost of the whole run, if its number of samples was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Bill>,
    /// Source of the kernel times.
    pub kernels_from: &'a str,
    /// Source of the host's pace.
    pub host_from: &'a str,
    /// GPU time by kind of kernel, longest first.
    pub by_kernel: Vec<Part>,
    /// GPU time by part of the model, longest first.
    pub by_component: Vec<Part>,
    /// Peak rates that kernels reach.
    pub roof: Roof,
    /// Operations of the step under the roofline, longest first.
    pub roofline: Vec<Point>,
}

/// Memory and time of a step in one document. `M` is the answer about its memory: that of a simulated setup
/// ([`report::EstimateDocument`](vramscope_engine::report::Answer)) or of a recorded step ([`recording::RecordedDocument`](vramscope_engine::recording::Answer)).
#[derive(Debug, Clone, Serialize)]
pub struct Estimate<'a, M> {
    /// Several GPUs that share the step, of which this is one; `None` for a single GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Parallel>,
    /// Memory of the step, and the verdict on it.
    #[serde(flatten)]
    pub memory: M,
    /// Memory before and beside the steps; `None` of a recording, which tells nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub around: Option<AroundDocument<'a>>,
    /// Milliseconds of each phase; `None` if the card's rates are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<Milliseconds>,
    /// Breakdown of the time; `None` if the card's rates are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeAnswer<'a>>,
}

/// Throughput of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throughput {
    /// Samples per second over all GPUs, including the wait for data.
    pub samples_per_s: f64,
    /// Text positions per second, including image tokens; `None` for models without text.
    pub tokens_per_s: Option<f64>,
    /// Floating-point operations of one GPU's matrix products and attention in a step.
    pub flops: f64,
    /// The card's peak rate in the dtype of the products, in operations per second.
    pub peak: f64,
    /// Floating-point operations as a share of the card's peak in the same time.
    pub flops_utilisation: f64,
}

/// Communication of one GPU in a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CommunicationAnswer {
    /// Milliseconds that the step waits for communication: its time minus that of the same step if communication took
    /// none.
    pub exposed_ms: f64,
    /// Milliseconds of all communication, one after the other.
    pub total_ms: f64,
    /// Number of collectives.
    pub calls: u64,
    /// Bytes that the GPU sends over a ring.
    pub bytes_sent: u64,
    /// Bytes copied between the GPU and its host, both directions.
    pub bytes_to_and_from_host: u64,
    /// Milliseconds that a pipeline stage waits for others while the pipeline fills and drains.
    pub filling_ms: f64,
}

/// Data loading of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DataAnswer {
    /// Milliseconds from one step to the next.
    pub interval_ms: f64,
    /// Milliseconds of the interval in which the GPU waits for data.
    pub wait_ms: f64,
    /// Share of the interval in which the GPU waits for data.
    pub idle_share: f64,
    /// Number of worker processes.
    pub workers: u64,
    /// Smallest number of workers within 1% of the shortest interval.
    pub best_workers: u64,
    /// Gantt chart of the first batches.
    pub bars: Vec<Bar>,
}

/// Options of a run besides its setup.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// Sources of the kernel times and of the host's pace.
    pub sources: [&'a str; 2],
    /// Samples and prices, to compute time and cost of the whole run.
    pub expense: Expense,
}

/// GPU time of one kind of kernel or one part of the model, for one micro-batch and the update.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// Name of the kind or part.
    pub name: &'static str,
    /// GPU time in milliseconds.
    pub ms: f64,
    /// Number of kernel launches.
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

    /// Seconds of a whole step whose counted work is repeated, given the seconds of each phase.
    fn whole(repeated: u64, of: impl Fn(Phase) -> f64) -> f64 {
        repeated as f64 * (of(Phase::Forward) + of(Phase::Backward)) + of(Phase::Optimizer)
    }

    /// Seconds of a whole step with all micro-batches.
    pub fn step_seconds(&self, setup: &Setup) -> f64 {
        Self::whole(setup.accum.max(1), |phase| self.phase(phase).total)
    }
}

impl TimedRun<'_> {
    /// Milliseconds of the phases, and the breakdown of the time.
    pub fn answer<'t>(&self, costs: &Costs<'_>, asked: Asked<'t>) -> (Milliseconds, TimeAnswer<'t>) {
        let time = self.time(costs);
        let step = self.counted(&time);
        let whole = |of: &dyn Fn(Phase) -> f64| StepTime::whole(self.repeated(), of) * 1e3;
        let Throughput {
            samples_per_s,
            tokens_per_s,
            flops_utilisation,
            ..
        } = self.throughput(&time, costs);
        let roof = Roof::of(costs, self.computed_in());
        let answer = TimeAnswer {
            step_ms: time.step * 1e3,
            step_ms_interval: self
                .interval(&time, costs)
                .map(|ends| ends.map(|seconds| seconds * 1e3)),
            samples_per_s,
            tokens_per_s,
            flops_utilisation,
            gpu_idle_share: time.parallel_time.idle_share(),
            bound: step.bound(),
            step_ms_without_host: whole(&|phase| step.phase(phase).busy),
            step_ms_without_gpu: whole(&|phase| step.phase(phase).host),
            communication: (self.gpus() > 1).then(|| time.communication()),
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

    /// Throughput of a step with this time.
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

    /// Data loading, if it was described.
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

/// Largest number of workers considered.
const MOST_WORKERS: u64 = 32;

impl RunTime {
    /// Communication of one of several GPUs.
    pub fn communication(&self) -> CommunicationAnswer {
        let ParallelTime { traffic, exposed, .. } = &self.parallel_time;
        CommunicationAnswer {
            exposed_ms: exposed * 1e3,
            total_ms: traffic.seconds * 1e3,
            calls: traffic.calls,
            bytes_sent: traffic.bytes as u64,
            bytes_to_and_from_host: traffic.host_bytes as u64,
            filling_ms: self.parallel_time.waiting * 1e3,
        }
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
