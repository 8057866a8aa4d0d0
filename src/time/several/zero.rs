//! Simulates `ZeroRedundancyOptimizer`: each GPU updates its share of the parameters and broadcasts it to the others.

use super::super::communication::Collective;
use super::super::timeline::Phase;
use super::player::Player;
use vramscope_engine::setup::Parallel;
use vramscope_engine::simulate::{Recording, own_parameters};
use vramscope_engine::tape::work::{Chore, Class, Item, Launch};

/// Simulates the update of the first rank's parameters, then a broadcast of every parameter from its owner, one by one
/// (`_sync_params`).
pub(super) fn update(player: &mut Player<'_, '_>, recording: &Recording, parallel: &Parallel) {
    let own = own_parameters(recording, parallel.world);
    let trained: Vec<u64> = recording
        .parameters
        .iter()
        .filter(|(_, trained)| *trained)
        .map(|&(id, _)| {
            let birth = &recording.log.births[id as usize];
            birth.shape.numel() * birth.dtype.width()
        })
        .collect();
    let all: u64 = trained.iter().sum();
    let mine: u64 = trained.iter().zip(&own).filter(|(_, own)| **own).map(|(n, _)| n).sum();
    let share = mine as f64 / all.max(1) as f64;
    player.begin(Phase::Optimizer);
    let mut turns = 0;
    for item in recording.work.optimizer() {
        match item {
            Item::Launch(launch) => player.item(&Item::Launch(part(launch, share))),
            // The host iterates over its own parameters only, but every rank clears all gradients.
            Item::Chore(Chore::Parameter(name, _)) if *name != "zero_grad" => {
                if own.get(turns % own.len().max(1)).copied().unwrap_or(true) {
                    player.item(item);
                }
                turns += 1;
            }
            _ => player.item(item),
        }
    }
    let updated = player.computed();
    let mut done = updated;
    for bytes in trained {
        done = player.collective(Collective::Broadcast, bytes as f64, updated);
        player.host("zero parameter", 1);
    }
    player.join(done);
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
