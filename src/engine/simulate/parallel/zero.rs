//! Rewrites a recording for `ZeroRedundancyOptimizer`: states of a part of the parameters.

use super::super::steps::{Recording, Step};
use crate::order::sort_by_key;
use crate::setup::{Optimizer, Parallel};
use crate::tape::log::{Event, StorageId};
use crate::tape::{Kind, Tensor};

/// True if a step makes as many states and temporaries for each parameter, so that those of other ranks are known in one that
/// updates all. Otherwise the optimizer updates its own parameters alone as the step is recorded.
pub(super) const fn is_rewritten(optim: Optimizer) -> bool {
    matches!(
        optim,
        Optimizer::Adamw | Optimizer::AdamwFused | Optimizer::AdamwLoop | Optimizer::Sgd | Optimizer::Sgdm
    )
}

/// Lets an optimizer update only what the first rank does, the largest first; each of two optimizers is shared by itself.
pub(super) fn keep_own(optimizer: &mut crate::optim::Optimizer, world: u64) {
    let of_group = |group: &[Tensor]| {
        let own = assigned(&group.iter().map(Tensor::numel).collect::<Vec<_>>(), world);
        let kept = group.iter().zip(own).filter(|(_, own)| *own);
        let mut kept: Vec<Tensor> = kept.map(|(param, _)| param.clone()).collect();
        sort_by_key(&mut kept, |param| std::cmp::Reverse(param.numel()));
        kept
    };
    let mut groups = optimizer.groups().map(of_group);
    let own = [0, 1].map(|_| groups.next().unwrap_or_default());
    drop(groups);
    optimizer.keep_own(own);
}

/// Drops states, and temporaries of the update, of parameters that another rank updates.
pub(super) fn rewrite(mut recording: Recording, parallel: &Parallel) -> Recording {
    let own = own(&recording, parallel.world);
    let mut is_foreign = vec![false; recording.log.allocations.len()];
    for step in [&recording.first, &recording.steady] {
        for id in foreign_of(&recording, step, &own) {
            is_foreign[id as usize] = true;
        }
    }
    for step in [&mut recording.first, &mut recording.steady] {
        let marks = &mut step.marks;
        let update = step.events.split_off(marks.after_backward);
        let (optimizer, rest) = update.split_at(marks.after_optimizer - marks.after_backward);
        let kept = |event: &&Event| !is_foreign[event.storage() as usize];
        step.events.extend(optimizer.iter().filter(kept));
        marks.after_optimizer = step.events.len();
        step.events.extend(rest);
    }
    recording
}

/// Marks the trained parameters that the first rank updates: parameters go to ranks largest first, each to the rank
/// with the fewest elements (`_partition_parameters`).
pub fn own(recording: &Recording, world: u64) -> Vec<bool> {
    let trained = recording.parameters.iter().filter(|(_, trained)| *trained);
    let sizes: Vec<u64> = trained
        .map(|&(id, _)| recording.log.allocations[id as usize].shape.numel())
        .collect();
    assigned(&sizes, world)
}

/// The same of parameters of these sizes.
fn assigned(sizes: &[u64], world: u64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    sort_by_key(&mut order, |&at| std::cmp::Reverse(sizes[at]));
    let mut filled = vec![0_u64; world as usize];
    let mut own = vec![false; sizes.len()];
    for at in order {
        let rank = (0..filled.len()).min_by_key(|&rank| filled[rank]).unwrap_or_default();
        filled[rank] += sizes[at];
        own[at] = rank == 0;
    }
    own
}

/// Storages of one update that belong to parameters of other ranks. Optimizers go over the parameters in order and make
/// equally many states, and equally many temporaries, for each.
fn foreign_of(recording: &Recording, step: &Step, own: &[bool]) -> Vec<StorageId> {
    let update = &step.events[step.marks.after_backward..step.marks.after_optimizer];
    let mut foreign = Vec::new();
    for kind in [Kind::OptimizerState, Kind::Temporary] {
        let born = update.iter().filter(|event| event.is_alloc());
        let ids = born.map(|event| event.storage());
        let ids: Vec<StorageId> = ids
            .filter(|&id| recording.log.allocations[id as usize].kind == kind)
            .collect();
        if !own.is_empty() && ids.len().is_multiple_of(own.len()) {
            let each = ids.len() / own.len();
            let others = ids.into_iter().enumerate().filter(|(at, _)| !own[at / each]);
            foreign.extend(others.map(|(_, id)| id));
        }
    }
    foreign
}
