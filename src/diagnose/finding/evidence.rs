//! Combines several pieces of evidence: the card's memory and contradicting findings.

use super::{Cause, Confidence, Finding};
use crate::Evidence;
use vramscope_engine::units::Bytes;

/// Memory of the card, from the first piece of evidence that reports it.
pub fn capacity(all: &[&Evidence]) -> Option<Bytes> {
    all.iter().find_map(|one| match one {
        Evidence::Oom(message) => message.total.map(|total| total.bytes),
        Evidence::Smi(smi) => smi.devices.iter().find_map(|device| device.total),
        Evidence::Log(log) => log.total,
        _ => None,
    })
}

/// Lowers or removes findings that other evidence contradicts or explains, and removes duplicates.
pub fn reconcile(findings: &mut Vec<Finding>) {
    let is_leaking = findings
        .iter()
        .any(|finding| matches!(finding.cause, Cause::Leak(_)) && finding.confidence <= Confidence::Likely);
    let is_explained = findings
        .iter()
        .any(|finding| !matches!(finding.cause, Cause::NoNumbers));
    for finding in findings.iter_mut() {
        // A run that grew until it failed did start with enough memory.
        if is_leaking && matches!(finding.cause, Cause::OutOfCapacity { .. }) {
            finding.confidence = finding.confidence.max(Confidence::Possible);
        }
    }
    // An error without numbers adds nothing once another finding explains it.
    findings.retain(|finding| !is_explained || !matches!(finding.cause, Cause::NoNumbers));
    let mut seen: Vec<Finding> = Vec::new();
    findings.retain(|finding| {
        let is_known = |known: &Finding| known.cause == finding.cause && known.confidence == finding.confidence;
        let is_new = !seen.iter().any(is_known);
        if is_new {
            seen.push(finding.clone());
        }
        is_new
    });
}
