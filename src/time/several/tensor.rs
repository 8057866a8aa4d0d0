//! Simulates tensor and pipeline parallelism: the kernels of one GPU's part, and the communication between them
//! (all-reduce and all-gather, or transfers from neighbouring stages).

use super::super::communication::Collective;
use super::super::cost::Costs;
use super::super::timeline::Phase;
use super::player::Player;
use vramscope_engine::simulate::Recording;
use vramscope_engine::tape::work::{Chore, Item, Shared};

/// Simulates a step: forward, backward, and the update of this GPU's part, at the host's pace for `DTensor`s if it has
/// any.
pub(super) fn step(player: &mut Player<'_, '_>, recording: &Recording, of_update: &Costs<'_>) {
    for (phase, items) in [
        (Phase::Forward, recording.work.forward()),
        (Phase::Backward, recording.work.backward()),
    ] {
        player.begin(phase);
        items.iter().for_each(|item| play(player, item));
    }
    player.update(recording.work.optimizer(), of_update);
}

/// Runs an item; it waits for a collective whose result it needs.
fn play(player: &mut Player<'_, '_>, item: &Item) {
    let Item::Chore(Chore::Shared(what, bytes)) = item else {
        return player.item(item);
    };
    let ready = player.computed();
    let done = player.collective(collective(*what), *bytes as f64, ready);
    player.join(done);
}

/// The collective that sums, gathers or passes on a tensor of a distributed model.
pub const fn collective(what: Shared) -> Collective {
    match what {
        Shared::Summed => Collective::AllReduce,
        Shared::Gathered => Collective::AllGather,
        Shared::Received => Collective::SendReceive,
    }
}
