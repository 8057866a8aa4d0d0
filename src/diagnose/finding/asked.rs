//! What to paste next, where the cause cannot be named yet.

use std::collections::BTreeMap;

use super::hypotheses::make;
use super::known::Known;
use super::{Confidence, Finding};
use crate::facts::Fact;

/// A remark with what was read and the things to paste next, if nothing names a cause.
pub fn finding(known: &Known<'_>, findings: &[Finding]) -> Option<Finding> {
    if known.texts.is_empty() {
        return None;
    }
    // A card that is full is no cause yet: what filled it is still to be asked for.
    let is_known = findings.iter().any(|finding| {
        finding.confidence <= Confidence::Likely && !matches!(finding.cause, super::Cause::OutOfCapacity { .. })
    });
    if is_known {
        return None;
    }
    let lines: usize = known.texts.iter().map(|text| text.lines).sum();
    let values = BTreeMap::from([("lines".to_owned(), lines.to_string())]);
    let facts = &known.facts;
    let name = match facts.has(Fact::Oom) || facts.has(Fact::HostOom) || facts.has(Fact::Killed) {
        true => "facts-missing",
        false => "nothing-failed-here",
    };
    make(name, facts, values, Vec::new(), &known.texts)
}
