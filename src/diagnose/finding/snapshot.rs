//! Finds causes in a memory snapshot.

use super::capacity::{ACT, share};
use super::{Action, Cause, Confidence, Context, Finding, growth};
use crate::log::Point;
use crate::snapshot::{Category, Group, Summary};
use vramscope_engine::units::Bytes;

/// Groups smaller than this are not reported.
const WORTH: Bytes = Bytes::mib(64);

/// Findings that the recording of one device supports.
pub fn findings(summary: &Summary, capacity: Option<Bytes>, context: &Context) -> Vec<Finding> {
    let failed = summary.failure.map(|failure| {
        Finding::new(
            Confidence::Cause,
            Cause::OutOfCapacity {
                devices: Vec::new(),
                request: Some(failure.request),
                total: capacity,
                free: Some(failure.free),
                allocated: Some(summary.holes.live),
                reserved: Some(summary.holes.reserved),
            },
            &[Action::SmallerBatch, Action::Checkpoint, Action::SmallerOptimizer],
        )
    });
    let mut found: Vec<Finding> = [
        failed,
        expandable(summary),
        leak(summary, capacity),
        Some(peak(summary)),
        holes(summary),
        never_freed(summary),
        unforeseen(summary, context),
    ]
    .into_iter()
    .flatten()
    .collect();
    let would_do = found.iter().any(|finding| {
        finding.confidence == Confidence::Cause && matches!(finding.cause, Cause::ExpandableSegments { .. })
    });
    for finding in &mut found {
        if would_do && matches!(finding.cause, Cause::OutOfCapacity { .. }) {
            finding.confidence = Confidence::Possible;
        }
    }
    found
}

fn peak(summary: &Summary) -> Finding {
    let mut by_category: Vec<(Category, Bytes)> = summary
        .at_peak
        .iter()
        .copied()
        .filter(|(_, bytes)| *bytes > Bytes::ZERO)
        .collect();
    by_category.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    let steps: &[Action] = match by_category.first() {
        Some((Category::Activation, _)) => &[Action::Checkpoint, Action::SmallerBatch],
        Some((Category::OptimizerState, _)) => &[Action::SmallerOptimizer, Action::Adapters],
        Some((Category::Weight | Category::Gradient, _)) => &[Action::Adapters, Action::SmallerOptimizer],
        _ => &[Action::Checkpoint],
    };
    let cause = Cause::Peak {
        peak: summary.peak,
        by_category,
        largest: summary.largest.iter().take(5).cloned().collect(),
    };
    Finding::new(Confidence::Note, cause, steps)
}

fn expandable(summary: &Summary) -> Option<Finding> {
    let played = summary.expandable?;
    let saved = played.reserved.saturating_sub(played.expandable);
    let confidence = match played.serves {
        Some(true) => Confidence::Cause,
        _ if saved.get() >= played.reserved.get() / 10 => Confidence::Likely,
        _ if saved > WORTH => Confidence::Possible,
        _ => Confidence::RuledOut,
    };
    let cause = Cause::ExpandableSegments {
        reserved: played.reserved,
        expandable: played.expandable,
        serves: played.serves,
    };
    let steps: &[Action] = if confidence == Confidence::RuledOut {
        &[]
    } else {
        &[Action::ExpandableSegments]
    };
    Some(Finding::new(confidence, cause, steps))
}

/// Finds fragmentation: free memory inside segments that tensors partly occupy.
fn holes(summary: &Summary) -> Option<Finding> {
    let holes = summary.holes;
    let share = share(holes.within, holes.reserved);
    let cause = Cause::Fragmentation {
        reserved: holes.reserved,
        unallocated: holes.within,
        share,
        request: summary.failure.map(|failure| failure.request),
        free: summary.failure.map(|failure| failure.free),
    };
    let (confidence, steps): (_, &[Action]) = match share {
        share if share > ACT => (
            Confidence::Possible,
            &[Action::ExpandableSegments, Action::GroupByLength],
        ),
        _ => (Confidence::RuledOut, &[]),
    };
    (holes.reserved > Bytes::ZERO).then(|| Finding::new(confidence, cause, steps))
}

fn leak(summary: &Summary, capacity: Option<Bytes>) -> Option<Finding> {
    let points: Vec<Point> = (1..)
        .zip(&summary.steps)
        .map(|(step, &bytes)| Point {
            step,
            bytes,
            length: None,
        })
        .collect();
    match growth::of("live after each step", &points, capacity)? {
        growth::GrowthVerdict::Leak(finding) | growth::GrowthVerdict::Steady(finding) => Some(finding),
    }
}

fn never_freed(summary: &Summary) -> Option<Finding> {
    let groups: Vec<Group> = summary
        .never_freed
        .iter()
        .filter(|group| group.bytes > Bytes::mib(1))
        .cloned()
        .collect();
    let bytes: Bytes = groups.iter().map(|group| group.bytes).sum();
    // A run that failed in the middle of a step still holds that step's tensors, so they prove no leak.
    let confidence = if summary.failure.is_some() {
        Confidence::Note
    } else {
        Confidence::Possible
    };
    let cause = Cause::NeverFreed { bytes, groups };
    (bytes > WORTH).then(|| {
        Finding::new(
            confidence,
            cause,
            &[Action::DetachLoss, Action::NoLists, Action::RemoveHooks],
        )
    })
}

fn unforeseen(summary: &Summary, context: &Context) -> Option<Finding> {
    let report = context.report?;
    let simulated = report.first.peak().max(report.peak_allocated);
    let cause = Cause::Unforeseen {
        recorded: summary.peak,
        simulated,
    };
    let more = summary.peak.saturating_sub(simulated);
    let confidence = if more.get() >= simulated.get() / 20 {
        Confidence::Likely
    } else {
        Confidence::Note
    };
    Some(Finding::new(confidence, cause, &[]))
}
