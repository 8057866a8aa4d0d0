//! Drives the allocator with a recorded run.

use super::large_pool::LargePool;
use super::process_replay::ProcessReplay;
use super::side_by_side::both;
use super::steps::Recording;
use crate::allocator::{AscendingAddresses, Options, OutOfMemory, PoolKind, SegmentSource, ShuffledAddresses};
use crate::report::{BlockBytes, Reserved, SegmentLayout, StepBytes};
use crate::tape::Kind;
use crate::tape::log::StorageId;
use crate::units::Bytes;

/// Figures of the allocator over a run of three steps.
#[derive(Debug, PartialEq)]
pub struct Replay {
    /// Allocated bytes once the model is made.
    pub after_model: Bytes,
    /// Figures of each step.
    pub steps: [StepBytes; 3],
    /// Highest reserved bytes of the run, by layout of segments.
    pub reserved: Vec<Reserved>,
    /// Bytes of each storage's block, by storage.
    pub block_bytes: BlockBytes,
    /// Storages that live before the steady step.
    pub initial: Vec<StorageId>,
    /// Number of events of the steady step before its highest total.
    pub peak: usize,
}

/// Replays making the model, then the first step, and the second twice.
///
/// # Errors
/// When the allocator's limit is too small for the run.
pub fn replay(recording: &Recording, options: &Options) -> Result<Replay, OutOfMemory> {
    let (fresh, used) = both(
        || ProcessReplay::recorded(recording, options).finish(recording),
        || replay_used(recording, options),
    );
    Ok(joined(fresh?, used?))
}

/// Combines a run in a fresh process, and its segments of the small pool, with the large pool's segments in other
/// layouts.
pub(super) fn joined((mut replay, small): (Replay, Vec<Bytes>), used: Vec<(SegmentLayout, Vec<Bytes>)>) -> Replay {
    for (layout, large) in used {
        replay
            .reserved
            .push(Reserved::new(layout, small.iter().copied().chain(large)));
    }
    replay
}

/// Replays the large pool in a process that has trained before, and returns its segments by layout.
pub(super) fn replay_used(
    recording: &Recording,
    options: &Options,
) -> Result<Vec<(SegmentLayout, Vec<Bytes>)>, OutOfMemory> {
    // Expandable segments grow in place: there is one range for each pool, and no order of segments to vary.
    if options.expandable_segments {
        return Ok(Vec::new());
    }
    let large = LargePool::of(recording);
    let allocations = &recording.log.allocations;
    // A process that has trained keeps its libraries' workspaces for good. Their segments are cached before the model is
    // made, and parameters move into what they leave over.
    let left_behind: Vec<StorageId> = (0..allocations.len())
        .filter_map(|id| {
            large
                .number(id as StorageId)
                .filter(|_| allocations[id].kind == Kind::Workspace)
        })
        .collect();
    let play = |source| play_used(&large, &left_behind, options, source);
    // The driver's order of addresses depends on everything that the process did before, which no recording says. Two
    // orders bound what it can do: segments of equal fit are chosen by address.
    let ascending: Box<dyn SegmentSource> = Box::new(AscendingAddresses::default());
    let drawn: Box<dyn SegmentSource> = Box::new(ShuffledAddresses::new(0));
    Ok(vec![
        (SegmentLayout::UsedProcess, play(ascending)?),
        (SegmentLayout::DrawnOrder, play(drawn)?),
    ])
}

/// Replays a run with segments at the addresses that `source` returns, and returns the large pool's segments.
fn play_used(
    large: &LargePool,
    left_behind: &[StorageId],
    options: &Options,
    source: Box<dyn SegmentSource>,
) -> Result<Vec<Bytes>, OutOfMemory> {
    let mut replayer = large.replayer(options, source);
    replayer.leave_behind(left_behind)?;
    replayer.build(&large.build, &large.emptied)?;
    replayer.play(&large.first)?;
    let before = replayer.lasting();
    replayer.play(&large.steady)?;
    if !replayer.settle(&before) {
        replayer.play(&large.steady)?;
    }
    Ok(replayer.segments(PoolKind::Large).collect())
}
