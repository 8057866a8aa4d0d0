//! Drives the allocator with a recorded run.

use super::player::Player;
use super::steps::Recording;
use crate::allocator::{Options, OutOfMemory};
use crate::report::StepBytes;
use crate::tape::log::StorageId;
use crate::units::Bytes;

/// The allocator's figures over a run of three steps.
pub struct Replay {
    /// Allocated bytes once the model is made.
    pub after_model: u64,
    /// Figures of each step.
    pub steps: [StepBytes; 3],
    /// Highest reserved bytes of the run.
    pub peak_reserved: u64,
    /// Bytes of each storage's block, by storage.
    pub block_bytes: Vec<u64>,
    /// Segments in the end, by size, with their number.
    pub segments: Vec<(Bytes, u64)>,
    /// Storages that live before the steady step.
    pub initial: Vec<StorageId>,
    /// How many events of the steady step come before its highest total.
    pub peak: usize,
}

/// Replays making the model, then the first step, the second, and the second again.
///
/// # Errors
/// When the allocator's limit does not hold the run.
pub fn replay(recording: &Recording, options: Options) -> Result<Replay, OutOfMemory> {
    let mut player = Player::new(&recording.log.births, options);
    let after_model = player.build(&recording.build)?;
    let first = player.step(&recording.first)?;
    let initial = player.live();
    let before = player.layouts();
    let second = player.step(&recording.steady)?;
    let third = if player.settle(&before) {
        second
    } else {
        player.step(&recording.steady)?
    };
    let steps = [first, second, third];
    Ok(Replay {
        after_model,
        steps,
        peak_reserved: player.peak_reserved(),
        peak: player.peak(),
        segments: player.segments(),
        block_bytes: player.into_block_bytes(),
        initial,
    })
}
