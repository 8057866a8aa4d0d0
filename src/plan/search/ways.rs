//! The ways in which several GPUs may share.

use super::Samples;
use vramscope_engine::setup::{Parallel, Strategy};

/// Micro-batches of which `Schedule1F1B` has enough in a step.
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

/// Every way to share that is simulated: all of it on each GPU, its states sharded, or everything; or, where the model
/// can be cut so, each linear map, or its blocks. A pipeline that fills first (`GPipe`) is no faster than 1F1B and holds no
/// less.
pub(super) fn parallels(world: u64, open: bool, offload: bool, [maps, blocks]: [bool; 2]) -> Vec<Option<Parallel>> {
    if world < 2 {
        return vec![None];
    }
    let of = |strategy, mp, offload| {
        Some(Parallel {
            strategy,
            world,
            mp,
            offload,
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
