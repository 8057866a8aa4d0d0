//! Finds fragmentation and retries in the allocator's counters (course row 9.stats).

use super::capacity::{ACT, share};
use super::{Cause, Finding, Standing, Step};
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
    let (standing, steps): (_, &[Step]) = match share {
        share if share > EMPTY => (
            Standing::Likely,
            &[Step::ExpandableSegments, Step::EmptyCache, Step::GroupByLength],
        ),
        share if share > ACT => (Standing::Possible, &[Step::ExpandableSegments, Step::GroupByLength]),
        _ => (Standing::RuledOut, &[]),
    };
    let cause = Cause::Fragmentation {
        reserved,
        unallocated,
        share,
        request: None,
        free: None,
    };
    Some(Finding::new(standing, cause, steps))
}

fn retries(counters: &Counters) -> Option<Finding> {
    let (ooms, retries) = (counters.ooms.unwrap_or(0), counters.retries.unwrap_or(0));
    let steps = [Step::SmallerBatch, Step::ExpandableSegments];
    (ooms > 0 || retries > 0).then(|| Finding::new(Standing::Likely, Cause::Retries { ooms, retries }, &steps))
}
