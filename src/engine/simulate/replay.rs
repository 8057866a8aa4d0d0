//! Drives the allocator with a recorded run.

use super::player::Player;
use super::steps::Recording;
use crate::allocator::{
    AscendingAddresses, CachingAllocator, Options, OutOfMemory, PoolKind, SegmentSource, ShuffledAddresses,
};
use crate::report::{Reserved, SegmentLayout, StepBytes};
use crate::tape::Kind;
use crate::tape::log::{Event, StorageId};
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
    let mut player = Player::new(&requests, CachingAllocator::new(options.clone()));
    player.set_streams(&recording.streams);
    let after_model = player.build(&recording.build)?;
    let first = player.step(&recording.first)?;
    let before = player.lasting();
    let second = player.step(&recording.steady)?;
    let third = if player.settle(&before) {
        second
    } else {
        player.step(&recording.steady)?
    };
    let small = player.segments(PoolKind::Small);
    let mut reserved = vec![Reserved::new(
        SegmentLayout::FreshProcess,
        small.chain(player.segments(PoolKind::Large)),
    )];
    if !options.expandable_segments {
        let large = Large::of(recording, &requests);
        let ascending = large.play(options, AscendingAddresses::default())?;
        let drawn = large.play(options, ShuffledAddresses::new(0))?;
        for (layout, large) in [
            (SegmentLayout::UsedProcess, ascending),
            (SegmentLayout::DrawnOrder, drawn),
        ] {
            reserved.push(Reserved::new(layout, player.segments(PoolKind::Small).chain(large)));
        }
    }
    Ok(Replay {
        after_model,
        steps: [first, second, third],
        reserved,
        peak: player.peak(),
        block_bytes: player.into_block_bytes(),
        initial: before.storages(),
    })
}

/// What the large pool sees of a run in a process that has trained before.
///
/// The small pool takes segments of one size, 2 MiB, so that their order decides little: it is not
/// played again.
struct Large<'a> {
    recording: &'a Recording,
    /// Bytes that each storage asks for.
    requests: &'a [u64],
    /// Left behind by the run before.
    workspaces: Vec<StorageId>,
    build: Vec<Event>,
    first: Vec<Event>,
    steady: Vec<Event>,
}

impl<'a> Large<'a> {
    fn of(recording: &'a Recording, requests: &'a [u64]) -> Self {
        // Rounding takes no request across the border between the pools.
        let kinds: Vec<PoolKind> = requests.iter().map(|&bytes| PoolKind::of(bytes)).collect();
        let is_large = |id: StorageId| kinds[id as usize] == PoolKind::Large;
        let large = |events: &[Event]| -> Vec<Event> {
            let mut large = Vec::with_capacity(events.len() / 4);
            for &event in events {
                if is_large(event.storage()) {
                    large.push(event);
                }
            }
            large
        };
        let births = &recording.log.births;
        Self {
            recording,
            requests,
            workspaces: (0..births.len())
                .filter(|&id| births[id].kind == Kind::Workspace && is_large(id as StorageId))
                .map(|id| id as StorageId)
                .collect(),
            build: large(&recording.build),
            first: large(&recording.first.events),
            steady: large(&recording.steady.events),
        }
    }

    /// Plays the run with segments where `source` puts them: the bytes of each.
    fn play(&self, options: &Options, source: impl SegmentSource) -> Result<Vec<Bytes>, OutOfMemory> {
        let mut player = Player::new(self.requests, CachingAllocator::with_source(options.clone(), source));
        player.set_streams(&self.recording.streams);
        player.leave_behind(&self.workspaces)?;
        player.build(&self.build)?;
        player.play(&self.first)?;
        let before = player.lasting();
        player.play(&self.steady)?;
        if !player.settle(&before) {
            player.play(&self.steady)?;
        }
        Ok(player.segments(PoolKind::Large).collect())
    }
}
