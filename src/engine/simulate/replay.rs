//! Drives the allocator with a recorded run.

use super::large_pool::LargePool;
use super::player::Player;
use super::side_by_side::both;
use super::steps::Recording;
use crate::allocator::{
    AscendingAddresses, CachingAllocator, Options, OutOfMemory, PoolKind, SegmentSource, ShuffledAddresses,
};
use crate::report::{Reserved, SegmentLayout, StepBytes};
use crate::tape::Kind;
use crate::tape::log::StorageId;
use crate::units::Bytes;

/// The allocator's figures over a run of three steps.
pub struct Replay {
    /// Allocated bytes once the model is made.
    pub after_model: u64,
    /// Figures of each step.
    pub steps: [StepBytes; 3],
    /// Highest reserved bytes of the run, by where segments lie.
    pub reserved: Vec<Reserved>,
    /// Bytes of each storage's block, by storage.
    pub block_bytes: Vec<u64>,
    /// Storages that live before the steady step.
    pub initial: Vec<StorageId>,
    /// How many events of the steady step come before its highest total.
    pub peak: usize,
}

/// Replays making the model, then the first step, the second, and the second again.
///
/// # Errors
/// When the allocator's limit does not hold the run.
pub fn replay(recording: &Recording, options: &Options) -> Result<Replay, OutOfMemory> {
    let requests = recording.log.births.requests();
    let (fresh, used) = both(
        || replay_fresh(recording, &requests, options),
        || replay_used(recording, &requests, options),
    );
    let (mut replay, small) = fresh?;
    for (layout, large) in used? {
        replay
            .reserved
            .push(Reserved::new(layout, small.iter().copied().chain(large)));
    }
    Ok(replay)
}

/// The run in a fresh process, and its segments of the small pool.
fn replay_fresh(
    recording: &Recording,
    requests: &[u64],
    options: &Options,
) -> Result<(Replay, Vec<Bytes>), OutOfMemory> {
    let mut player = Player::new(requests, &recording.streams, CachingAllocator::new(options.clone()));
    let after_model = player.build(&recording.build)?;
    let first = player.step(&recording.first)?;
    let before = player.lasting();
    let second = player.step(&recording.steady)?;
    let third = if player.settle(&before) {
        second
    } else {
        player.step(&recording.steady)?
    };
    let small: Vec<Bytes> = player.segments(PoolKind::Small).collect();
    let segments = small.iter().copied().chain(player.segments(PoolKind::Large));
    let reserved = vec![Reserved::new(SegmentLayout::FreshProcess, segments)];
    let replay = Replay {
        after_model,
        steps: [first, second, third],
        reserved,
        peak: player.peak(),
        block_bytes: player.into_block_bytes(),
        initial: before.storages(),
    };
    Ok((replay, small))
}

/// The segments of the large pool in a process that has trained before, by where segments lie.
fn replay_used(
    recording: &Recording,
    requests: &[u64],
    options: &Options,
) -> Result<Vec<(SegmentLayout, Vec<Bytes>)>, OutOfMemory> {
    // With expandable segments their order decides nothing.
    if options.expandable_segments {
        return Ok(Vec::new());
    }
    let large = LargePool::of(recording, requests);
    let births = &recording.log.births;
    let left_behind: Vec<StorageId> = (0..births.len())
        .filter_map(|id| {
            large
                .number(id as StorageId)
                .filter(|_| births[id].kind == Kind::Workspace)
        })
        .collect();
    let play = |source| play_used(&large, &left_behind, options, source);
    let ascending: Box<dyn SegmentSource> = Box::new(AscendingAddresses::default());
    let drawn: Box<dyn SegmentSource> = Box::new(ShuffledAddresses::new(0));
    Ok(vec![
        (SegmentLayout::UsedProcess, play(ascending)?),
        (SegmentLayout::DrawnOrder, play(drawn)?),
    ])
}

/// The segments of a run with segments where `source` puts them.
fn play_used(
    large: &LargePool,
    left_behind: &[StorageId],
    options: &Options,
    source: Box<dyn SegmentSource>,
) -> Result<Vec<Bytes>, OutOfMemory> {
    let mut player = large.player(options, source);
    player.leave_behind(left_behind)?;
    player.build(&large.build)?;
    player.play(&large.first)?;
    let before = player.lasting();
    player.play(&large.steady)?;
    if !player.settle(&before) {
        player.play(&large.steady)?;
    }
    Ok(player.segments(PoolKind::Large).collect())
}
