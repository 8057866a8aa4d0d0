//! Rewrites a recording for `DistributedDataParallel`: buckets of gradients.

use super::super::steps::{Recording, Step, StepMarks};
use super::rewrite::{Piece, allocations};
use crate::dtype::DType;
use crate::setup::Parallel;
use crate::tape::Kind;
use crate::tape::log::{Event, Log, StorageId};

/// Adds buckets of all trained parameters from the start; with `view`, gradients move into them as soon as they are
/// complete.
///
/// The first step's single bucket (`sys.maxsize`), which is rebuilt in the second step, is not simulated separately:
/// both take the same bytes in total. While NCCL's work holds the old one, both are live; that depends on its watchdog.
pub(super) fn rewrite(mut recording: Recording, parallel: &Parallel, view: bool) -> Recording {
    let buckets = buckets(&mut recording, parallel.bucket << 20);
    recording.build.extend(allocations(&buckets));
    if view {
        for step in [&mut recording.first, &mut recording.steady] {
            move_gradients(&recording.log, step);
        }
    }
    recording
}

/// `compute_bucket_assignment_by_size` over the parameters in the order in which backward reaches them, last first: a
/// bucket is full once it holds `cap` bytes; each type has its own.
fn buckets(recording: &mut Recording, cap: u64) -> Vec<StorageId> {
    let trained = recording.parameters.iter().rev().filter(|(_, trained)| *trained);
    let sizes: Vec<(DType, u64)> = trained
        .map(|&(id, _)| {
            let allocation = &recording.log.allocations[id as usize];
            (allocation.dtype, allocation.shape.numel())
        })
        .collect();
    let mut open: Vec<(DType, u64)> = Vec::new();
    let mut full: Vec<(DType, u64)> = Vec::new();
    for (dtype, elements) in sizes {
        let at = open.iter().position(|(known, _)| *known == dtype).unwrap_or_else(|| {
            open.push((dtype, 0));
            open.len() - 1
        });
        open[at].1 += elements;
        if open[at].1 * dtype.width() >= cap {
            full.push(open.remove(at));
        }
    }
    full.extend(open);
    let piece = |(dtype, elements)| Piece {
        elements,
        dtype,
        name: "DDP bucket",
        kind: Kind::Gradient,
        scope: 0,
    };
    full.into_iter()
        .map(|size| piece(size).describe(&mut recording.log))
        .collect()
}

/// Copies each gradient into its bucket and frees it once the operation that made it is done, which is when that
/// operation's inputs are freed.
fn move_gradients(log: &Log, step: &mut Step) {
    let is_gradient = |event: &Event| log.allocations[event.storage() as usize].kind == Kind::Gradient;
    let mut moved = vec![false; log.allocations.len()];
    let mut waiting: Vec<StorageId> = Vec::new();
    let mut settled = false;
    let mut events = Vec::with_capacity(step.events.len());
    let old = std::mem::take(&mut step.events);
    let StepMarks {
        before_forward,
        after_forward,
        after_backward,
        after_optimizer,
    } = &mut step.marks;
    let marks = [before_forward, after_forward, after_backward, after_optimizer];
    let mut marks = marks.into_iter().peekable();
    for (at, event) in old.iter().enumerate() {
        while let Some(mark) = marks.next_if(|mark| **mark == at) {
            flush(&mut waiting, &mut events);
            *mark = events.len();
        }
        if event.is_alloc() {
            if settled {
                flush(&mut waiting, &mut events);
            }
            settled = false;
            if is_gradient(event) && !std::mem::replace(&mut moved[event.storage() as usize], true) {
                waiting.push(event.storage());
            }
            events.push(*event);
        } else if !moved[event.storage() as usize] {
            settled = true;
            events.push(*event);
        }
    }
    flush(&mut waiting, &mut events);
    for mark in marks {
        *mark = events.len();
    }
    step.events = events;
}

fn flush(waiting: &mut Vec<StorageId>, events: &mut Vec<Event>) {
    events.extend(waiting.drain(..).map(Event::free));
}
