//! Orders findings: one cause first, what it explains taken away, what was ruled out last.

use super::{Cause, Confidence, Finding};
use crate::kind;

/// Orders all findings; at most one stays the cause.
pub fn order(findings: &mut Vec<Finding>) {
    explain(findings);
    let mut seen: Vec<&'static str> = Vec::new();
    // Of equal findings the most certain has to come first: it is the one that stays.
    findings.sort_by_key(|finding| (finding.confidence, std::cmp::Reverse(finding.rank())));
    // Several devices, or several attempts, leave the same message: such a finding is shown once.
    findings.retain(|finding| {
        let code = finding.cause.code();
        let is_once = matches!(
            finding.cause,
            Cause::OutOfCapacity { .. }
                | Cause::Fragmentation { .. }
                | Cause::Known { .. }
                | Cause::NoNumbers
                | Cause::Site(_)
        );
        let is_new = !is_once || !seen.contains(&code);
        seen.push(code);
        is_new
    });
    let mut has_cause = false;
    for finding in findings.iter_mut() {
        if finding.confidence == Confidence::Cause && std::mem::replace(&mut has_cause, true) {
            finding.confidence = Confidence::Likely;
        }
    }
    findings.sort_by_key(|finding| (finding.confidence, std::cmp::Reverse(finding.rank())));
}

/// Takes away what a better finding explains, and the general remarks once something is known.
fn explain(findings: &mut Vec<Finding>) {
    let explained: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.confidence <= Confidence::Likely)
        .filter_map(|finding| match &finding.cause {
            Cause::Known { kind, .. } => kind::named(kind),
            _ => None,
        })
        .flat_map(|(_, kind)| kind.explains.iter().map(String::as_str))
        .collect();
    findings.retain(|finding| !explained.contains(&finding.cause.code()));
    let is_told = |finding: &Finding| {
        finding.confidence <= Confidence::Likely
            && matches!(&finding.cause, Cause::Known { kind, .. } if kind::named(kind).is_some_and(|(_, kind)| !kind.is_remark()))
    };
    let is_general = |finding: &Finding| matches!(&finding.cause, Cause::Known { kind, .. } if kind::named(kind).is_some_and(|(_, kind)| kind.is_general));
    let is_suggested = |finding: &Finding| {
        finding.confidence == Confidence::Possible
            && matches!(finding.cause, Cause::Known { .. })
            && !is_general(finding)
    };
    if !findings.iter().any(is_told) {
        if findings.iter().any(is_suggested) {
            // That the card is full is no explanation where something may have filled it: it becomes one possibility among
            // these, ordered by rank.
            let full = findings
                .iter_mut()
                .filter(|finding| matches!(finding.cause, Cause::OutOfCapacity { .. }));
            full.for_each(|finding| finding.confidence = Confidence::Possible);
        }
        return;
    }
    findings.retain(|finding| {
        let is_denied = finding.confidence == Confidence::RuledOut;
        if is_general(finding) {
            return false;
        }
        match finding.cause {
            Cause::NoNumbers | Cause::NearlyFull { .. } | Cause::Utilization { .. } => false,
            Cause::Fragmentation { .. } | Cause::NoLeak { .. } => !is_denied,
            _ => true,
        }
    });
    for finding in findings.iter_mut() {
        if matches!(finding.cause, Cause::OutOfCapacity { .. }) {
            // The numbers stay, but the steps against a full card give way to those against its cause.
            finding.confidence = Confidence::Note;
            finding.steps.clear();
        }
    }
}

impl Finding {
    /// Order among findings of one confidence: the more specific one is higher. Findings that code makes are ranked on the
    /// same scale as those of the files in `kinds`.
    pub(super) fn rank(&self) -> u8 {
        match &self.cause {
            Cause::Known { kind, .. } => kind::named(kind).map_or(0, |(_, kind)| kind.rank),
            Cause::OtherProcesses { .. } => 80,
            Cause::Limit { .. } => 75,
            Cause::Leak(_) => 70,
            Cause::Fragmentation { .. } | Cause::DataLoading { .. } => 65,
            Cause::Tensors { .. } | Cause::LongSample { .. } => 60,
            Cause::AttentionMatrix { .. } | Cause::Logits { .. } => 45,
            Cause::RefusedThoughFree { .. } | Cause::HostMemory { .. } => 40,
            Cause::OutsideTheCache { .. } => 38,
            Cause::OutOfCapacity { .. } => 36,
            Cause::Site(_) => 35,
            _ => 30,
        }
    }
}
