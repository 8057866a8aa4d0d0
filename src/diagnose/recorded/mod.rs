//! Comparison of a recording made without a GPU with a memory snapshot of a run on one.

mod align;
mod recording_side;
mod snapshot_side;

use std::collections::BTreeMap;

use serde::Serialize;

use self::align::{Kind, Skip};
use self::recording_side::RecordingSide;
use self::snapshot_side::SnapshotSide;
use crate::Snapshot;
use vramscope_engine::order::sort_by;
use vramscope_engine::recording::{Played, RecordedRun, RecordingError, report};
use vramscope_engine::tape::log::Event;
use vramscope_engine::units::Bytes;

/// Comparison of a recording with a snapshot.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// Device of the snapshot.
    pub device: u32,
    /// Stretch from the first event on, if the snapshot begins with an empty allocator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beginning: Option<Stretch>,
    /// Last recorded step against the most similar step of the snapshot; `None` if nothing matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Stretch>,
    /// Highest live bytes of the recorded step.
    pub recorded_peak: Bytes,
    /// Highest live bytes of the snapshot within the compared step; `None` if nothing matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub happened_peak: Option<Bytes>,
}

/// Compared stretch of both sides.
#[derive(Debug, Clone, Serialize)]
pub struct Stretch {
    /// Number of allocations with the same bytes in the same order on both sides.
    pub alike: u64,
    /// Number of allocations in the recorded stretch.
    pub recorded: u64,
    /// First difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Difference>,
    /// Allocations only in the recording, largest groups first.
    pub only_recorded: Vec<Group>,
    /// Allocations only in the snapshot, largest groups first.
    pub only_happened: Vec<Group>,
    /// True if both sides diverge for good, so that the rest is not compared.
    pub parted: bool,
}

/// First event that differs.
#[derive(Debug, Clone, Serialize)]
pub struct Difference {
    /// Number of the snapshot's event.
    pub event: u32,
    /// Number of matching allocations before it.
    pub after: u64,
    /// Allocation of the recording at this place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<AllocationSite>,
    /// Allocation of the snapshot at this place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub happened: Option<AllocationSite>,
}

/// Allocation of either side.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AllocationSite {
    /// Requested bytes.
    pub bytes: Bytes,
    /// Module and operation, or the line of code, that allocated it.
    pub place: String,
}

/// Allocations of one size and place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Size and place of the allocations.
    #[serde(flatten)]
    pub made: AllocationSite,
    /// Number of allocations.
    pub count: u64,
}

/// Maximum number of groups kept.
const KEPT: usize = 10;

/// Replays a run, and compares it with each device of a snapshot that has events.
///
/// Both sides are compared as sequences of allocations by their requested bytes: addresses depend on the driver, and
/// frees follow from references, which Python's garbage collector may drop later.
///
/// # Errors
/// Fails like [`report`].
pub fn compare(run: RecordedRun, snapshots: &[Snapshot]) -> Result<(Vec<Comparison>, Played), RecordingError> {
    let recording = RecordingSide::of(&run);
    let mut all = Vec::new();
    for snapshot in snapshots {
        let devices = (0..snapshot.devices.len()).filter(|&device| !snapshot.devices[device].events.is_empty());
        all.extend(devices.map(|device| of_device((&run, &recording), &SnapshotSide::of(snapshot, device))));
    }
    let played = report(run)?;
    all.iter_mut()
        .for_each(|comparison| comparison.recorded_peak = played.report.peak_allocated);
    Ok((all, played))
}

fn of_device((run, recording): (&RecordedRun, &RecordingSide<'_>), snapshot: &SnapshotSide<'_>) -> Comparison {
    let beginning = snapshot.is_from_start.then(|| {
        let upto = recording.allocations.len();
        stretch((recording, 0..upto), snapshot, 0)
    });
    let last = recording.last_step(run);
    let sizes = recording.sizes();
    let at = align::find(&sizes[last.clone()], &snapshot.sizes());
    let step = at.map(|(skipped, at)| (last.start + skipped..last.end, at));
    let happened_peak = step.as_ref().map(|(recorded, at)| {
        let end = (*at + recorded.len()).min(snapshot.allocations.len());
        snapshot.peak(*at..end)
    });
    Comparison {
        device: snapshot.device,
        beginning,
        step: step.map(|(recorded, at)| stretch((recording, recorded), snapshot, at)),
        recorded_peak: Bytes::ZERO,
        happened_peak,
    }
}

/// Compares a range of recorded allocations with the snapshot's from `at` on.
fn stretch(
    (recording, range): (&RecordingSide<'_>, std::ops::Range<usize>),
    snapshot: &SnapshotSide<'_>,
    at: usize,
) -> Stretch {
    let (ours, theirs) = (&recording.sizes()[range.clone()], &snapshot.sizes()[at..]);
    let walk = align::walk(ours, theirs);
    let first = walk.skips.first().map(|skip| Difference {
        event: snapshot.event(at + skip.theirs.start),
        after: skip.alike,
        recorded: ours
            .get(skip.ours.start)
            .map(|_| recording.made(range.start + skip.ours.start)),
        happened: theirs
            .get(skip.theirs.start)
            .map(|_| snapshot.made(at + skip.theirs.start)),
    });
    let of = |kind: Kind| {
        let skips = walk.skips.iter().filter(|skip| !skip.is_end);
        let all = skips.flat_map(move |skip: &Skip| match kind {
            Kind::Ours => skip.ours.clone(),
            Kind::Theirs => skip.theirs.clone(),
        });
        groups(all.map(|i| match kind {
            Kind::Ours => recording.made(range.start + i),
            Kind::Theirs => snapshot.made(at + i),
        }))
    };
    Stretch {
        alike: walk.alike,
        recorded: ours.len() as u64,
        first,
        only_recorded: of(Kind::Ours),
        only_happened: of(Kind::Theirs),
        parted: walk
            .skips
            .last()
            .is_some_and(|skip| skip.is_end && !skip.ours.is_empty()),
    }
}

fn groups(all: impl Iterator<Item = AllocationSite>) -> Vec<Group> {
    let mut counted: BTreeMap<AllocationSite, u64> = BTreeMap::new();
    for made in all {
        *counted.entry(made).or_default() += 1;
    }
    let mut groups: Vec<Group> = counted.into_iter().map(|(made, count)| Group { made, count }).collect();
    sort_by(&mut groups, |a, b| {
        let bytes = |group: &Group| u128::from(group.made.bytes.get()) * u128::from(group.count);
        bytes(b).cmp(&bytes(a))
    });
    groups.truncate(KEPT);
    groups
}

/// Returns allocations among events except empty ones, which are not requested from the allocator.
fn allocations<'a>(run: &'a RecordedRun, events: &'a [Event]) -> impl Iterator<Item = u32> + 'a {
    let allocations = events
        .iter()
        .filter(|event| event.is_alloc())
        .map(|event| event.storage());
    allocations.filter(|&id| run.log().allocations[id as usize].bytes > 0)
}
