//! Estimates the time of a training step on one of several GPUs, and the communication that it waits for.
//!
//! A strategy adds collectives to the step of a single GPU. They run on their own stream: each starts when its inputs
//! are computed and the previous one is done, and the computation waits where it needs the result. Computation and
//! communication are assumed not to slow each other down, although a collective's kernels take some of the GPU's
//! multiprocessors and bandwidth. All GPUs are assumed to be equally fast.
//!
//! Sources for the order of events: those in [`simulate::parallel`](vramscope_engine::simulate::simulate_parallel).

mod ddp;
mod fsdp;
mod replayer;
mod tensor;
#[cfg(test)]
mod tests;
mod ways;
mod zero;

use super::cost::Costs;
use super::milliseconds::Milliseconds;
use super::network::Network;
use super::step::{StepTime, step};
use ddp::Compression;
use replayer::Replayer;
pub use replayer::Traffic;
pub use tensor::collective;
use vramscope_engine::setup::{Parallel, Strategy};
use vramscope_engine::simulate::{Recording, SimulateError, parallel_work};
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Model, Setup};
pub use ways::{Way, ways};

/// Time of a step on one of several GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct ParallelTime {
    /// The last micro-batch and the update.
    pub last: StepTime,
    /// The micro-batches before, which do not communicate (`no_sync`); `None` if there is only one.
    pub before: Option<StepTime>,
    /// Communication of the step.
    pub traffic: Traffic,
    /// Seconds of the step that it would save if communication took no time.
    pub exposed: f64,
    /// Seconds that a pipeline stage waits while the pipeline fills and drains, assuming that all stages take as long
    /// as this one: stages − 1 micro-batches. In this case `last` covers all micro-batches of the step.
    pub waiting: f64,
}

impl ParallelTime {
    /// A step on a single GPU without communication.
    pub(super) fn alone(setup: &Setup, step: StepTime) -> Self {
        Self {
            before: (setup.accum > 1).then(|| step.clone()),
            last: step,
            traffic: Traffic::default(),
            exposed: 0.0,
            waiting: 0.0,
        }
    }

    /// Seconds of the whole step with all micro-batches.
    pub fn step_seconds(&self, setup: &Setup) -> f64 {
        let before = setup.accum.max(1) - 1;
        let quiet = self.before.as_ref().map_or(0.0, StepTime::without_update);
        before as f64 * quiet + self.last.total() + self.waiting
    }

    /// Share of the step in which the GPU computes nothing.
    pub fn idle_share(&self) -> f64 {
        let waits = self.waiting / (self.last.total() + self.waiting);
        if waits > 0.0 {
            waits + (1.0 - waits) * self.last.idle_share()
        } else {
            self.last.idle_share()
        }
    }

    /// Milliseconds of each phase of the last micro-batch and the update.
    pub fn milliseconds(&self) -> Milliseconds {
        self.last.milliseconds()
    }
}

/// Estimates the time of a setup's step on one of several GPUs.
///
/// # Errors
/// Those of [`simulate_parallel`](vramscope_engine::simulate::simulate_parallel).
pub fn estimate_parallel(
    model: &Model,
    setup: &Setup,
    parallel: &Parallel,
    gpu: Gpu,
    (costs, network): (&Costs<'_>, &Network<'_>),
) -> Result<ParallelTime, SimulateError> {
    let recording = parallel_work(model, setup, parallel, gpu)?;
    Ok(parallel_time(&recording, setup, parallel, (costs, network)))
}

/// Time of a recorded step.
pub(super) fn parallel_time(
    recording: &Recording,
    setup: &Setup,
    parallel: &Parallel,
    (costs, network): (&Costs<'_>, &Network<'_>),
) -> ParallelTime {
    compressed(recording, setup, (parallel, Compression::None), (costs, network))
}

/// Time of a recorded step with compressed gradients.
fn compressed(
    recording: &Recording,
    setup: &Setup,
    shared: (&Parallel, Compression),
    (costs, network): (&Costs<'_>, &Network<'_>),
) -> ParallelTime {
    let (last, traffic) = play(recording, setup, shared, (costs, network));
    let (instant, _) = play(recording, setup, shared, (costs, &network.instant()));
    let parallel = shared.0;
    let is_pipeline = parallel.strategy.is_pipeline();
    let waits = if is_pipeline {
        (parallel.world - 1) as f64 / setup.accum as f64
    } else {
        0.0
    };
    ParallelTime {
        exposed: (last.total() - instant.total()).max(0.0),
        waiting: waits * last.without_update(),
        before: (setup.accum > 1 && !is_pipeline).then(|| match parallel.strategy {
            // FSDP2 gathers and sums in each micro-batch of a loop.
            Strategy::Tensor | Strategy::Fsdp | Strategy::FsdpNoReshard => last.clone(),
            _ => step(recording, costs),
        }),
        last,
        traffic,
    }
}

fn play(
    recording: &Recording,
    setup: &Setup,
    (parallel, compression): (&Parallel, Compression),
    (costs, network): (&Costs<'_>, &Network<'_>),
) -> (StepTime, Traffic) {
    let sharded = costs.pace.sharded();
    let mut replayer = Replayer::new(&recording.log, costs, network, parallel.world);
    match parallel.strategy {
        Strategy::Ddp | Strategy::DdpView => {
            ddp::passes(&mut replayer, recording, parallel, compression);
            replayer.update(recording.work.optimizer(), costs);
        }
        Strategy::Zero1 => {
            ddp::passes(&mut replayer, recording, parallel, compression);
            zero::update(&mut replayer, recording, parallel);
        }
        Strategy::Fsdp | Strategy::FsdpNoReshard => {
            let sharded = costs.with_pace(&sharded);
            fsdp::step(&mut replayer, recording, (setup, parallel), &sharded);
        }
        Strategy::Pipeline | Strategy::PipelineGpipe => tensor::step(&mut replayer, recording, costs),
        // `parallel_work` refuses them.
        Strategy::Fsdp1 | Strategy::Fsdp1NoReshard => {}
        Strategy::Deepspeed0 | Strategy::Deepspeed1 | Strategy::Deepspeed2 | Strategy::Deepspeed3 => {}
        Strategy::Tensor => {
            let sharded = costs.with_pace(&sharded);
            tensor::step(&mut replayer, recording, &sharded);
        }
    }
    replayer.done()
}
