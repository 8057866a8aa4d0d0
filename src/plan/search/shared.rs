//! The time of a step that several GPUs share: an estimate from the data sheet of what joins them.

use super::staged::recorded;
use vramscope_engine::device::Device;
use vramscope_engine::setup::{Parallel, Strategy};
use vramscope_engine::tape::work::{Chore, Item};
use vramscope_engine::units::Bytes;
use vramscope_time::collective;
use vramscope_time::communication::{Collective, Link};

/// Time of several GPUs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared {
    link: Option<Link>,
}

impl Shared {
    /// GPUs joined by what their data sheet says.
    pub fn of(device: Option<&Device>) -> Self {
        Self {
            link: device.and_then(Link::of),
        }
    }

    /// Seconds in which paged states go to the host and come back, at the rate of the bus: what a card without room
    /// for them waits for at most.
    pub fn paging(&self, device: Option<&Device>, paged: Bytes) -> f64 {
        let rate = device.and_then(Device::pcie).map(|rate| rate.as_gb_per_s() * 1e9);
        rate.map_or(0.0, |rate| 2.0 * paged.get() as f64 / rate)
    }

    /// Seconds in which GPUs that have each a part of the model sum, gather and receive, in forward and in backward: each
    /// waits for it.
    /// None where nothing joins them.
    pub fn between<'w, P: Iterator<Item = (&'w [Item], u64)>>(
        &self,
        parts: Option<&Parallel>,
        phases: [P; 2],
    ) -> Option<[f64; 2]> {
        let Some(parallel) = parts else { return Some([0.0; 2]) };
        let link = self.link?;
        let seconds = |(items, times): (&[Item], u64)| times as f64 * together(items, &link, parallel.world);
        Some(phases.map(|parts| parts.map(seconds).sum()))
    }

    /// An update of shards is that part of the whole.
    pub fn of_update(parallel: Option<&Parallel>, seconds: f64) -> f64 {
        match parallel {
            Some(parallel)
                if !parallel.is_in_parts() && !matches!(parallel.strategy, Strategy::Ddp | Strategy::DdpView) =>
            {
                seconds / parallel.world as f64
            }
            _ => seconds,
        }
    }

    /// Seconds of a step: `micro_batches` passes of `[forward, backward]`, of which the last hides the reduction of
    /// gradients behind its backward (DDP under `no_sync`), and gathers behind whichever phase needs them (FSDP2
    /// prefetches); then the update.
    pub fn step(
        &self,
        parallel: Option<&Parallel>,
        [forward, backward]: [f64; 2],
        micro_batches: u64,
        update: f64,
        trained: Bytes,
    ) -> Option<f64> {
        let passes = micro_batches as f64;
        let Some(parallel) = parallel else {
            return Some(passes * (forward + backward) + update);
        };
        let link = self.link?;
        let (gpus, bytes) = (parallel.world, trained.get() as f64);
        let all = |collective| link.ring(collective, bytes, gpus);
        let (gathered, reduced) = (all(Collective::AllGather), all(Collective::ReduceScatter));
        Some(match parallel.strategy {
            Strategy::Ddp | Strategy::DdpView | Strategy::Zero1 => {
                let summed = link.all_reduce(bytes, gpus);
                let broadcast = if parallel.strategy == Strategy::Zero1 {
                    gathered
                } else {
                    0.0
                };
                (passes - 1.0) * (forward + backward) + forward + backward.max(summed) + update + broadcast
            }
            Strategy::FsdpNoReshard => passes * (forward.max(gathered) + backward.max(reduced)) + update,
            Strategy::Fsdp => passes * (forward.max(gathered) + backward.max(gathered + reduced)) + update,
            // What goes between the GPUs is in the phases: each waits for it.
            Strategy::Tensor => passes * (forward + backward) + update,
            // The phases are those of the micro-batches that were recorded; a step has as many as it has, and stages − 1
            // more while the pipeline fills and drains.
            Strategy::Pipeline | Strategy::PipelineGpipe => {
                let turns = (micro_batches + gpus - 1) as f64 / recorded(micro_batches, parallel) as f64;
                turns * (forward + backward) + update
            }
        })
    }
}

/// Seconds of what GPUs do together.
fn together(items: &[Item], link: &Link, gpus: u64) -> f64 {
    let seconds = |item: &Item| match item {
        Item::Chore(Chore::Shared(what, bytes)) => link.seconds(collective(*what), *bytes as f64, gpus),
        Item::Repeat(items, times) => *times as f64 * together(items, link, gpus),
        _ => 0.0,
    };
    items.iter().map(seconds).sum()
}
