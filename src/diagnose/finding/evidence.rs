//! What pieces of evidence say together.

use super::{Cause, Finding, Standing};
use crate::Evidence;
use vramscope_engine::units::Bytes;

/// All memory of the card, as the first piece tells it that does.
pub fn capacity(all: &[&Evidence]) -> Option<Bytes> {
    all.iter().find_map(|one| match one {
        Evidence::Oom(message) => message.total.map(|total| total.bytes),
        Evidence::Smi(smi) => smi.devices.iter().find_map(|device| device.total),
        Evidence::Log(log) => log.total,
        _ => None,
    })
}

/// Takes back what other evidence makes less sure.
pub fn reconcile(findings: &mut Vec<Finding>) {
    let is_leaking = findings
        .iter()
        .any(|finding| matches!(finding.cause, Cause::Leak(_)) && finding.standing <= Standing::Likely);
    let is_explained = findings
        .iter()
        .any(|finding| !matches!(finding.cause, Cause::NoNumbers));
    for finding in findings.iter_mut() {
        // A run that grew until it ended did not begin with too little.
        if is_leaking && matches!(finding.cause, Cause::OutOfCapacity { .. }) {
            finding.standing = finding.standing.max(Standing::Possible);
        }
    }
    // An error without numbers only says that there was one.
    findings.retain(|finding| !is_explained || !matches!(finding.cause, Cause::NoNumbers));
    let mut seen: Vec<Finding> = Vec::new();
    findings.retain(|finding| {
        let is_new = !seen.contains(finding);
        if is_new {
            seen.push(finding.clone());
        }
        is_new
    });
}
