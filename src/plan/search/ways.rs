//! Parallel strategies that a search tries.

use super::Samples;
use vramscope_engine::setup::{Offload, Parallel, Strategy};

/// Micro-batches that leave at least one for each stage of a pipeline, as `Schedule1F1B` requires.
pub(super) fn staged(common: &[u64], samples: Samples, world: u64) -> Vec<u64> {
    let Samples::Effective(samples) = samples else {
        return Vec::new();
    };
    common
        .iter()
        .copied()
        .filter(|batch| samples / batch >= world)
        .collect()
}

/// Parallel strategies that are simulated: replication, sharded states, full sharding; and, if the model can be split
/// this way, tensor parallelism or a pipeline. `GPipe` schedules are left out, since they are no faster than 1F1B and
/// take no less memory.
pub(super) fn parallels(world: u64, open: bool, offload: bool, [maps, blocks]: [bool; 2]) -> Vec<Option<Parallel>> {
    if world < 2 {
        return vec![None];
    }
    let of = |strategy, mp, offload| {
        Some(Parallel {
            strategy,
            world,
            mp,
            offload: if offload { Offload::Shards } else { Offload::None },
            ..Parallel::default()
        })
    };
    let mut all = vec![of(Strategy::Ddp, false, false)];
    if open {
        all.extend([of(Strategy::DdpView, false, false), of(Strategy::Zero1, false, false)]);
        for strategy in [Strategy::FsdpNoReshard, Strategy::Fsdp] {
            for (mp, host) in [(false, false), (true, false), (false, true), (true, true)] {
                if offload || !host {
                    all.push(of(strategy, mp, host));
                }
            }
        }
        if maps {
            all.push(of(Strategy::Tensor, false, false));
        }
        if blocks {
            all.push(of(Strategy::Pipeline, false, false));
        }
    }
    all
}
