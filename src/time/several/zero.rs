//! Simulates `ZeroRedundancyOptimizer`: each GPU updates its share of the parameters and broadcasts it to the others.

use super::super::communication::Collective;
use super::super::timeline::Phase;
use super::replayer::Replayer;
use vramscope_engine::setup::Parallel;
use vramscope_engine::simulate::{Recording, own_parameters};
use vramscope_engine::tape::work::{Class, HostOp, Launch, WorkItem};

/// Simulates the update of the first rank's parameters, then a broadcast of every parameter from its owner, one by one
/// (`_sync_params`).
pub(super) fn update(replayer: &mut Replayer<'_, '_>, recording: &Recording, parallel: &Parallel) {
    let own = own_parameters(recording, parallel.world);
    let trained: Vec<u64> = recording
        .parameters
        .iter()
        .filter(|(_, trained)| *trained)
        .map(|&(id, _)| {
            let allocation = &recording.log.allocations[id as usize];
            allocation.shape.numel() * allocation.dtype.width()
        })
        .collect();
    let all: u64 = trained.iter().sum();
    let mine: u64 = trained.iter().zip(&own).filter(|(_, own)| **own).map(|(n, _)| n).sum();
    let share = mine as f64 / all.max(1) as f64;
    replayer.begin(Phase::Optimizer);
    let mut turns = 0;
    for item in recording.work.optimizer() {
        match item {
            WorkItem::Launch(launch) => replayer.item(&WorkItem::Launch(part(launch, share))),
            // The host iterates over its own parameters only, but every rank clears all gradients.
            WorkItem::HostOp(HostOp::Parameter(name, _)) if *name != "zero_grad" => {
                if own.get(turns % own.len().max(1)).copied().unwrap_or(true) {
                    replayer.item(item);
                }
                turns += 1;
            }
            _ => replayer.item(item),
        }
    }
    let updated = replayer.computed();
    let mut done = updated;
    for bytes in trained {
        done = replayer.collective(Collective::Broadcast, bytes as f64, updated);
        replayer.host("zero parameter", 1);
    }
    replayer.join(done);
}

/// A kernel of an update on a share of its elements.
pub(super) fn part(launch: &Launch, share: f64) -> Launch {
    let of = |n: u64| (n as f64 * share).ceil() as u64;
    let [tensors, elements, c, d] = launch.extents;
    let lists = matches!(launch.class, Class::Foreach | Class::FusedAdamw | Class::ForeachNorm);
    Launch {
        read: of(launch.read),
        written: of(launch.written),
        extents: if lists {
            [tensors, of(elements), c, d]
        } else {
            launch.extents
        },
        ..*launch
    }
}
