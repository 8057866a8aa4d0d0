//! Estimates the time of a step on several GPUs from the data sheet of their interconnect.

use super::staged::recorded;
use vramscope_engine::device::Device;
use vramscope_engine::setup::{Parallel, Strategy};
use vramscope_engine::tape::work::{HostOp, WorkItem};
use vramscope_engine::units::Bytes;
use vramscope_time::collective;
use vramscope_time::communication::{Collective, Link};

/// Interconnect of several GPUs, to estimate communication time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared {
    link: Option<Link>,
}

impl Shared {
    /// Interconnect of a device according to its data sheet.
    pub fn of(device: Option<&Device>) -> Self {
        Self {
            link: device.and_then(Link::of),
        }
    }

    /// Seconds to move paged states to the host and back at the bus rate: an upper bound, for a card without room for
    /// any of them.
    pub fn paging(&self, device: Option<&Device>, paged: Bytes) -> f64 {
        let rate = device.and_then(Device::pcie).map(|rate| rate.as_gb_per_s() * 1e9);
        rate.map_or(0.0, |rate| 2.0 * paged.get() as f64 / rate)
    }

    /// Seconds of communication (all-reduce, all-gather, point to point) in forward and in backward, for GPUs that each
    /// hold a part of the model. Nothing overlaps it. `None` if the GPUs have no interconnect.
    pub fn between<'w, P: Iterator<Item = (&'w [WorkItem], u64)>>(
        &self,
        parts: Option<&Parallel>,
        phases: [P; 2],
    ) -> Option<[f64; 2]> {
        let Some(parallel) = parts else { return Some([0.0; 2]) };
        let link = self.link?;
        let seconds =
            |(items, times): (&[WorkItem], u64)| times as f64 * collective_seconds(items, &link, parallel.world);
        Some(phases.map(|parts| parts.map(seconds).sum()))
    }

    /// Seconds of an update: sharded states shorten it in proportion.
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

    /// Seconds of a step: `micro_batches` passes of `[forward, backward]`, then the update. Only the last backward
    /// overlaps the reduction of gradients (DDP under `no_sync`), and gathers overlap whichever phase needs them (FSDP2
    /// prefetches).
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
            Strategy::FsdpNoReshard | Strategy::Fsdp1NoReshard => {
                passes * (forward.max(gathered) + backward.max(reduced)) + update
            }
            Strategy::Fsdp | Strategy::Fsdp1 => {
                passes * (forward.max(gathered) + backward.max(gathered + reduced)) + update
            }
            // A search tries none of them.
            Strategy::Deepspeed0 | Strategy::Deepspeed1 => {
                (passes - 1.0) * (forward + backward)
                    + forward
                    + backward.max(link.all_reduce(bytes, gpus))
                    + update
                    + gathered
            }
            Strategy::Deepspeed2 => passes * (forward + backward.max(reduced)) + update + gathered,
            Strategy::Deepspeed3 => passes * (forward.max(gathered) + backward.max(gathered + reduced)) + update,
            // The phases already include communication, which nothing overlaps.
            Strategy::Tensor => passes * (forward + backward) + update,
            // The phases cover the micro-batches that were recorded. A step runs all of its micro-batches, plus stages
            // − 1 while the pipeline fills and drains.
            Strategy::Pipeline | Strategy::PipelineGpipe => {
                let turns = (micro_batches + gpus - 1) as f64 / recorded(micro_batches, parallel) as f64;
                turns * (forward + backward) + update
            }
        })
    }
}

/// Seconds of collective operations.
fn collective_seconds(items: &[WorkItem], link: &Link, gpus: u64) -> f64 {
    let seconds = |item: &WorkItem| match item {
        WorkItem::HostOp(HostOp::Collective(what, bytes)) => link.seconds(collective(*what), *bytes as f64, gpus),
        WorkItem::Repeat(items, times) => *times as f64 * collective_seconds(items, link, gpus),
        _ => 0.0,
    };
    items.iter().map(seconds).sum()
}
