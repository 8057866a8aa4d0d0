//! Replays a process whose steps have batches of different lengths.
//!
//! PyTorch's allocator keeps what it has cut for one length and seldom finds it right for the next: a block of 5.2 GiB
//! holds no tensor of 5.3 GiB, so that another segment is asked for while the old one stays cached. A run whose samples vary
//! reserves more than its longest sample does alone. It does not need more: once the card is full, the cache is let go of.

use super::replayer::Replayer;
use super::side_by_side::each;
use super::steps::Recording;
use crate::allocator::{CachingAllocator, Options, OutOfMemory, PoolKind, Xorshift};
use crate::report::{Reserved, SegmentLayout};
use crate::tape::log::{Event, StorageId};

/// Lengths that are recorded. More of them reserve a few per cent more: on a run of 10,240 positions 8 lengths reserve
/// 45 GiB, 16 lengths 77, 32 lengths 104 and 64 lengths 113, since the fewer they are, the more often a block is found that
/// was cut for the very same length.
const LENGTHS: u64 = 32;

/// Steps that are replayed: each length comes about six times.
const STEPS: usize = 192;

/// Fewest lengths that tell anything.
const FEWEST: usize = 8;

/// Lengths up to `most` positions of which [`after_many_lengths`] takes runs.
pub fn many_lengths(most: u64) -> impl Iterator<Item = u64> {
    (1..=LENGTHS).map(move |k| (most * k).div_ceil(LENGTHS))
}

/// Returns what a process may reserve whose batches are of many lengths, drawn evenly. `runs` are of one model and setup, but
/// for the lengths; those that `record` refuses are left out, such as those without room for an image. `None` if it refuses
/// too many, or if the tensors that last from step to step differ.
///
/// # Errors
/// When the allocator's limit is too small for the run.
pub fn after_many_lengths<R: Sync>(
    runs: &[R],
    record: impl Fn(&R) -> Option<Recording> + Sync + Send,
    options: &Options,
) -> Result<Option<Reserved>, OutOfMemory> {
    let recordings: Vec<Recording> = each(0..runs.len() as u64, |i| record(&runs[i as usize]))
        .into_iter()
        .flatten()
        .collect();
    if recordings.len() < FEWEST {
        return Ok(None);
    }
    reserved_over(&recordings, &drawn(recordings.len()), options)
}

/// Draws an order of steps, as indices below `n`.
fn drawn(n: usize) -> Vec<usize> {
    let mut numbers = Xorshift::new(0);
    (0..STEPS).map(|_| (numbers.next() % n as u64) as usize).collect()
}

/// One run at one length, as part of the process.
struct Part {
    /// Its steps after the first.
    steady: Vec<Event>,
    /// Storages that live between its steps: weights, states, and what is left of the step before.
    lasting: Vec<StorageId>,
}

/// Returns what a process reserves that makes the model and trains steps of these recordings in this order, given by their
/// indices. They are of one model and setup but for the length of samples. `None` if not all keep as many tensors from one
/// step to the next, so that one can't go on where another ends.
///
/// # Errors
/// When the allocator's limit is too small for the run.
///
/// # Panics
/// If an index is that of no recording.
pub fn reserved_over(
    recordings: &[Recording],
    order: &[usize],
    options: &Options,
) -> Result<Option<Reserved>, OutOfMemory> {
    let Some((&start, rest)) = order.split_first() else {
        return Ok(None);
    };
    let mut parts = Vec::with_capacity(recordings.len());
    let (mut requests, mut streams, mut first) = (Vec::new(), Vec::new(), StorageId::default());
    for (number, recording) in recordings.iter().enumerate() {
        let base = requests.len() as StorageId;
        if number == start {
            first = base;
        }
        requests.extend(recording.log.allocations.requests_from(0));
        streams.extend(recording.streams.iter().map(|&(id, stream)| (base + id, stream)));
        parts.push(Part {
            steady: moved(&recording.steady.events, base),
            lasting: lasting(recording).into_iter().map(|id| base + id).collect(),
        });
    }
    let kept = parts[start].lasting.len();
    if parts.iter().any(|part| part.lasting.len() != kept) {
        return Ok(None);
    }
    let mut replayer = Replayer::new(requests.into_iter(), &streams, CachingAllocator::new(options.clone()));
    let recording = &recordings[start];
    let build = moved(&recording.build, first);
    replayer.build(&build, &recording.emptied)?;
    replayer.play(&moved(&recording.first.events, first))?;
    let mut last = start;
    for &next in rest {
        replayer.hand_over(&parts[last].lasting, &parts[next].lasting);
        replayer.play(&parts[next].steady)?;
        last = next;
    }
    let segments = [PoolKind::Small, PoolKind::Large]
        .into_iter()
        .flat_map(|kind| replayer.segments(kind).collect::<Vec<_>>());
    let mut reserved = Reserved::new(SegmentLayout::ManyLengths, segments);
    // Under a limit the allocator releases segments on the way, so that the peak is above what is left.
    reserved.bytes = reserved.bytes.max(replayer.allocator().peak_reserved());
    Ok(Some(reserved))
}

/// Events of the storages whose numbers begin at `base`.
fn moved(events: &[Event], base: StorageId) -> Vec<Event> {
    events
        .iter()
        .map(|event| event.renamed(event.storage() + base))
        .collect()
}

/// Storages that live when the first step is done, in the order in which they were made.
fn lasting(recording: &Recording) -> Vec<StorageId> {
    let mut live = vec![0_i8; recording.log.allocations.len()];
    for event in recording.build.iter().chain(&recording.first.events) {
        live[event.storage() as usize] += if event.is_alloc() { 1 } else { -1 };
    }
    let ids = live.iter().enumerate().filter(|(_, live)| **live > 0);
    ids.map(|(id, _)| id as StorageId).collect()
}
