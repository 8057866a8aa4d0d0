//! Holds the simulated run of the same setup against the card on which it failed.

use std::collections::BTreeMap;

use vramscope_engine::units::Bytes;

use super::hypotheses::make;
use super::known::Known;
use super::{Context, Finding, words};
use crate::facts::Fact;

/// What the run needs by simulation beside what the card has; a run that should have fitted is a contradiction, and the
/// finding.
pub fn finding(known: &Known<'_>, capacity: Option<Bytes>, context: &Context) -> Option<Finding> {
    let (report, total) = (context.report?, capacity?);
    if !known.facts.has(Fact::Oom) || total == Bytes::ZERO {
        return None;
    }
    let needed = report.peak_reserved;
    // Context, libraries and the rounding of the card's size stay outside of the allocator.
    let is_enough = needed.get() < total.get() / 100 * 85;
    let name = if is_enough {
        "should-have-fitted"
    } else {
        "needs-by-simulation"
    };
    let values = BTreeMap::from([
        ("needed".to_owned(), words::bytes(needed)),
        ("card".to_owned(), words::bytes(total)),
    ]);
    make(name, &known.facts, values, Vec::new(), &known.texts)
}
