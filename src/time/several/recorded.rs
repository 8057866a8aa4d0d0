//! Plays a step that was recorded with what the strategy adds to it: the collectives of tensor and pipeline parallelism, and
//! the hooks of DeepSpeed, FSDP1 and FSDP2 as accelerate prepares it.

use super::super::communication::Collective;
use super::super::cost::Costs;
use super::super::timeline::Phase;
use super::replayer::Replayer;
use vramscope_engine::tape::work::{CollectiveKind, HostOp, WorkItem};

/// Plays forward and backward.
pub(super) fn passes(replayer: &mut Replayer<'_, '_>, [forward, backward]: [&[WorkItem]; 2]) {
    for (phase, items) in [(Phase::Forward, forward), (Phase::Backward, backward)] {
        replayer.begin(phase);
        items.iter().for_each(|item| play(replayer, item, replayer.costs));
    }
}

/// Plays the update at the pace of these costs.
pub(super) fn update(replayer: &mut Replayer<'_, '_>, items: &[WorkItem], costs: &Costs<'_>) {
    replayer.begin(Phase::Optimizer);
    items.iter().for_each(|item| play(replayer, item, costs));
}

/// Runs an item; it waits for what it needs of other GPUs.
fn play(replayer: &mut Replayer<'_, '_>, item: &WorkItem, costs: &Costs<'_>) {
    let WorkItem::HostOp(host_op) = item else {
        return replayer.item_with(item, costs);
    };
    match host_op {
        HostOp::Collective(what, bytes) => {
            let ready = replayer.computed();
            let done = replayer.collective(collective(*what), *bytes as f64, ready);
            replayer.join(done);
        }
        HostOp::Copied(dtype, bytes) => replayer.copy("copy of a hook", *dtype, *bytes),
        HostOp::Beside(transfer) => replayer.beside(transfer),
        HostOp::Event(number) => replayer.event(*number),
        HostOp::Join(number) => replayer.join(replayer.end_of(*number)),
        HostOp::Await(number) => replayer.host_join(replayer.end_of(*number)),
        _ => replayer.item_with(item, costs),
    }
}

/// The collective that sums, gathers or passes on a tensor of a distributed model.
pub const fn collective(what: CollectiveKind) -> Collective {
    match what {
        CollectiveKind::AllReduce => Collective::AllReduce,
        CollectiveKind::AllGather => Collective::AllGather,
        CollectiveKind::Receive => Collective::SendReceive,
    }
}
