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
mod recorded;
mod replayer;
#[cfg(test)]
mod tests;
mod ways;
mod zero;

use super::cost::Costs;
use super::milliseconds::Milliseconds;
use super::network::Network;
use super::step::{StepTime, step};
use ddp::Compression;
pub use recorded::collective;
use replayer::Replayer;
pub use replayer::Traffic;
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
            _ if parallel.is_recorded_whole(setup) => earlier(recording, parallel, (costs, network)),
            // FSDP2 gathers and sums in each micro-batch of a loop.
            Strategy::Tensor | Strategy::Fsdp | Strategy::FsdpNoReshard => last.clone(),
            _ => step(recording, costs),
        }),
        last,
        traffic,
    }
}

/// Time of a micro-batch before the last, with what the strategy does in it.
fn earlier(recording: &Recording, parallel: &Parallel, (costs, network): (&Costs<'_>, &Network<'_>)) -> StepTime {
    let work = &recording.work;
    let mut replayer = Replayer::new(&recording.log, costs, network, parallel.world);
    recorded::passes(
        &mut replayer,
        work.earlier().unwrap_or([work.forward(), work.backward()]),
    );
    replayer.done().0
}

fn play(
    recording: &Recording,
    setup: &Setup,
    (parallel, compression): (&Parallel, Compression),
    (costs, network): (&Costs<'_>, &Network<'_>),
) -> (StepTime, Traffic) {
    let sharded = costs.pace.sharded();
    let mut replayer = Replayer::new(&recording.log, costs, network, parallel.world);
    let work = &recording.work;
    let is_recorded = parallel.is_recorded_whole(setup) || parallel.is_in_parts();
    match parallel.strategy {
        strategy if is_recorded => {
            recorded::passes(&mut replayer, [work.forward(), work.backward()]);
            // `DTensor`s have a pace of their own.
            let of_update = match strategy == Strategy::Tensor || strategy.shards_parameters() {
                true => &costs.with_pace(&sharded),
                false => costs,
            };
            recorded::update(&mut replayer, work.optimizer(), of_update);
        }
        Strategy::Zero1 => {
            ddp::passes(&mut replayer, recording, parallel, compression);
            zero::update(&mut replayer, recording, parallel);
        }
        strategy if strategy.shards_parameters() => {
            let sharded = costs.with_pace(&sharded);
            fsdp::step(&mut replayer, recording, (setup, parallel), &sharded);
        }
        _ => {
            ddp::passes(&mut replayer, recording, parallel, compression);
            replayer.update(work.optimizer(), costs);
        }
    }
    replayer.done()
}
