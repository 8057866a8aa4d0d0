//! Converts a step's allocations and frees to signed sizes, for comparison with recordings.

use vramscope_engine::simulate::Step;
use vramscope_engine::tape::log::{Event, Log};

/// Allocations as positive and frees as negative sizes.
pub fn sizes(log: &Log, events: &[Event]) -> Vec<i64> {
    let size = |e: &Event| {
        let bytes = log.allocations[e.storage() as usize].bytes as i64;
        if e.is_alloc() { bytes } else { -bytes }
    };
    events.iter().map(size).collect()
}

/// Signed sizes for each phase of a step.
pub fn phases(log: &Log, step: &Step) -> [(&'static str, Vec<i64>); 4] {
    let m = step.marks;
    let sizes = |from: usize, to: usize| sizes(log, &step.events[from..to]);
    [
        ("forward", sizes(m.before_forward, m.after_forward)),
        ("backward", sizes(m.after_forward, m.after_backward)),
        ("optimizer", sizes(m.after_backward, m.after_optimizer)),
        ("zero_grad", sizes(m.after_optimizer, step.events.len())),
    ]
}

/// Sorts the frees between two allocations, since their order does not affect the allocator.
pub fn frees_in_order(sizes: &[i64]) -> Vec<i64> {
    let mut out = sizes.to_vec();
    for run in out.chunk_by_mut(|a, b| *a < 0 && *b < 0) {
        run.sort_unstable();
    }
    out
}

/// Describes the first difference between two sequences with sorted frees; `None` if they are equal.
pub fn difference(ours: &[i64], theirs: &[i64]) -> Option<String> {
    if ours == theirs {
        return None;
    }
    let at = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
    let near = |s: &[i64]| format!("{:?}", &s[at.min(s.len())..(at + 4).min(s.len())]);
    Some(format!(
        "{} events, {} recorded; from event {at} {} instead of {}",
        ours.len(),
        theirs.len(),
        near(ours),
        near(theirs)
    ))
}
