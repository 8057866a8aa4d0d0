//! Simulates tensor and pipeline parallelism: the kernels of one GPU's part, and the communication between them
//! (all-reduce and all-gather, or transfers from neighbouring stages).

use super::super::communication::Collective;
use super::super::cost::Costs;
use super::super::timeline::Phase;
use super::replayer::Replayer;
use vramscope_engine::simulate::Recording;
use vramscope_engine::tape::work::{CollectiveKind, HostOp, WorkItem};

/// Simulates a step: forward, backward, and the update of this GPU's part, at the host's pace for `DTensor`s if it has
/// any.
pub(super) fn step(replayer: &mut Replayer<'_, '_>, recording: &Recording, of_update: &Costs<'_>) {
    for (phase, items) in [
        (Phase::Forward, recording.work.forward()),
        (Phase::Backward, recording.work.backward()),
    ] {
        replayer.begin(phase);
        items.iter().for_each(|item| play(replayer, item));
    }
    replayer.update(recording.work.optimizer(), of_update);
}

/// Runs an item; it waits for a collective whose result it needs.
fn play(replayer: &mut Replayer<'_, '_>, item: &WorkItem) {
    let WorkItem::HostOp(HostOp::Collective(what, bytes)) = item else {
        return replayer.item(item);
    };
    let ready = replayer.computed();
    let done = replayer.collective(collective(*what), *bytes as f64, ready);
    replayer.join(done);
}

/// The collective that sums, gathers or passes on a tensor of a distributed model.
pub const fn collective(what: CollectiveKind) -> Collective {
    match what {
        CollectiveKind::AllReduce => Collective::AllReduce,
        CollectiveKind::AllGather => Collective::AllGather,
        CollectiveKind::Receive => Collective::SendReceive,
    }
}
