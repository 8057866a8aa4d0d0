//! Finds fragmentation and retries in the allocator's counters (course row 9.stats).

use super::capacity::{ACT, share};
use super::{Action, Cause, Confidence, Finding};
use crate::Counters;

/// Share of fragmentation above which emptying the cache helps.
const EMPTY: f64 = 0.3;

/// Findings that one device's counters support.
pub fn findings(counters: &Counters) -> Vec<Finding> {
    fragmentation(counters).into_iter().chain(retries(counters)).collect()
}

fn fragmentation(counters: &Counters) -> Option<Finding> {
    let allocated = counters.allocated.current?.bytes;
    let reserved = counters.reserved.current?.bytes;
    let unallocated = reserved.saturating_sub(allocated);
    let share = share(unallocated, reserved);
    let (confidence, steps): (_, &[Action]) = match share {
        share if share > EMPTY => (
            Confidence::Likely,
            &[Action::ExpandableSegments, Action::EmptyCache, Action::GroupByLength],
        ),
        share if share > ACT => (
            Confidence::Possible,
            &[Action::ExpandableSegments, Action::GroupByLength],
        ),
        _ => (Confidence::RuledOut, &[]),
    };
    let cause = Cause::Fragmentation {
        reserved,
        unallocated,
        share,
        request: None,
        free: None,
    };
    Some(Finding::new(confidence, cause, steps))
}

fn retries(counters: &Counters) -> Option<Finding> {
    let (ooms, retries) = (counters.ooms.unwrap_or(0), counters.retries.unwrap_or(0));
    let steps = [Action::SmallerBatch, Action::ExpandableSegments];
    (ooms > 0 || retries > 0).then(|| Finding::new(Confidence::Likely, Cause::Retries { ooms, retries }, &steps))
}
