//! Finds the time bottleneck in a profile (course rows 11.1, 11.tree, 11.bands) and the operations that allocate most
//! (9.profiler).

use super::{Action, Cause, Confidence, Finding, growth};
use crate::profile::{HotSpot, Profile, Work};
use vramscope_engine::units::Bytes;

/// Share of time above which a cost is reported. This is an estimate of ours; the course's example has 25.1% of data
/// loading and 18.3% of communication.
const WORTH: f64 = 0.05;
/// Share of time above which a cost is called the bottleneck; an estimate like [`WORTH`].
const BOUND: f64 = 0.15;
/// Size of an allocation above which it is a hot spot (course row 9.profiler).
const HOT: Bytes = Bytes::new(100_000_000);

/// Findings that a profile supports.
pub fn findings(profile: &Profile, capacity: Option<Bytes>) -> Vec<Finding> {
    let mut bounds: Vec<(f64, Finding)> = [data(profile), communication(profile), copies(profile)]
        .into_iter()
        .flatten()
        .collect();
    bounds.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut found: Vec<Finding> = bounds.into_iter().map(|(_, finding)| finding).collect();
    found.extend(idle(profile));
    found.extend(attention(profile));
    found.extend(hot_spots(profile));
    if let Some(growth::GrowthVerdict::Leak(finding)) = growth::of("profiled steps", &profile.memory, capacity) {
        found.push(finding);
    }
    found
}

fn bound(share: f64, cause: Cause, steps: &[Action]) -> Option<(f64, Finding)> {
    let confidence = match share {
        share if share >= BOUND => Confidence::Cause,
        share if share >= WORTH => Confidence::Possible,
        _ => return None,
    };
    Some((share, Finding::new(confidence, cause, steps)))
}

fn data(profile: &Profile) -> Option<(f64, Finding)> {
    let share = profile.host(Work::Data);
    bound(
        share,
        Cause::DataLoading { share },
        &[Action::FeedFaster, Action::Trace],
    )
}

fn communication(profile: &Profile) -> Option<(f64, Finding)> {
    let share = profile.device(Work::Communication);
    bound(
        share,
        Cause::Communication { share },
        &[Action::OverlapCommunication, Action::Trace],
    )
}

fn copies(profile: &Profile) -> Option<(f64, Finding)> {
    let share = profile.device(Work::Copy);
    bound(share, Cause::Copies { share }, &[Action::AsyncCopies])
}

fn idle(profile: &Profile) -> Option<Finding> {
    let busy = profile.busy?;
    let (confidence, steps): (_, &[Action]) = match busy {
        busy if busy < 0.7 => (Confidence::Likely, &[Action::FeedFaster, Action::FillTheDevice]),
        busy if busy < 0.85 => (Confidence::Possible, &[Action::FillTheDevice]),
        _ => (Confidence::Note, &[]),
    };
    Some(Finding::new(confidence, Cause::Idle { busy }, steps))
}

fn attention(profile: &Profile) -> Option<Finding> {
    let share = profile.device(Work::Attention);
    (share >= 0.4).then(|| {
        Finding::new(
            Confidence::Possible,
            Cause::AttentionTime { share },
            &[Action::FusedAttention],
        )
    })
}

fn hot_spots(profile: &Profile) -> Option<Finding> {
    let spots = profile.hot_spots.iter().filter(|spot| spot.bytes >= HOT);
    let spots: Vec<HotSpot> = spots.take(10).cloned().collect();
    (!spots.is_empty()).then(|| {
        Finding::new(
            Confidence::Note,
            Cause::HotSpots { spots },
            &[Action::Checkpoint, Action::Record],
        )
    })
}
