//! Events of a step as rows that can be compared.

use vramscope_engine::simulate::Step;
use vramscope_engine::tape::log::{Event, Log};

/// Events that are printed before and after the first difference.
const AROUND: usize = 6;

/// [`AROUND`], unless the variable of this name says otherwise.
pub fn around() -> usize {
    let given = std::env::var("AROUND").ok();
    given.and_then(|given| given.parse().ok()).unwrap_or(AROUND)
}

/// One allocation (positive) or free (negative) and where its tensor comes from.
pub type Row = (i64, String);

/// Tensors that are compared.
pub struct Kept {
    /// Fewest bytes.
    pub least: u64,
    /// Name of those that are left out.
    pub without: Option<String>,
}

impl Kept {
    pub fn keeps(&self, (bytes, from): &Row) -> bool {
        let named = self
            .without
            .as_ref()
            .is_some_and(|name| from.starts_with(name.as_str()));
        bytes.unsigned_abs() >= self.least && !named
    }
}

/// The micro-batches before the last, its forward, its backward, and everything after. A recording marks the end of the
/// optimizer, the tape that of the scaler.
pub fn phases(log: &Log, step: &Step, kept: &Kept) -> [(&'static str, Vec<Row>); 4] {
    let m = step.marks;
    let rows = |from: usize, to: usize| rows(log, &step.events[from..to], kept);
    [
        ("before", rows(0, m.before_forward)),
        ("forward", rows(m.before_forward, m.after_forward)),
        ("backward", rows(m.after_forward, m.after_backward)),
        ("optimizer", rows(m.after_backward, step.events.len())),
    ]
}

/// Rows of events, without tensors of fewer bytes than `least`.
pub fn rows(log: &Log, events: &[Event], kept: &Kept) -> Vec<Row> {
    let rows = events.iter().map(|event| row(log, event));
    sorted(rows.filter(|row| kept.keeps(row)).collect())
}

/// Sorts the frees between two allocations, since their order does not affect the allocator.
pub fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    for run in rows.chunk_by_mut(|a, b| a.0 < 0 && b.0 < 0) {
        run.sort();
    }
    rows
}

pub fn row(log: &Log, event: &Event) -> Row {
    let allocation = &log.allocations[event.storage() as usize];
    let bytes = allocation.bytes as i64;
    let (mut path, mut scope) = (Vec::new(), allocation.scope);
    while scope != 0 {
        let module = &log.scopes[scope as usize];
        path.push(match module.index {
            Some(index) => format!("{}.{index}", module.name),
            None => module.name.to_owned(),
        });
        scope = module.parent;
    }
    path.reverse();
    let from = format!("{} {:?} {}", allocation.name, allocation.shape, path.join("."));
    (if event.is_alloc() { bytes } else { -bytes }, from)
}

/// Events before the first that differs.
pub fn equal_before(theirs: &[Row], ours: &[Row]) -> usize {
    theirs.iter().zip(ours).take_while(|(a, b)| a.0 == b.0).count()
}

/// Prints where two sequences of events differ first; returns true if they are equal.
pub fn print_difference(phase: &str, theirs: &[Row], ours: &[Row]) -> bool {
    let at = equal_before(theirs, ours);
    if at == theirs.len() && at == ours.len() {
        println!("{phase}: {at} events, all equal");
        return true;
    }
    println!(
        "{phase}: {} recorded, {} simulated; different from event {at}",
        theirs.len(),
        ours.len()
    );
    for (name, rows) in [("recorded", theirs), ("simulated", ours)] {
        println!("  {name}");
        for (i, (bytes, from)) in rows
            .iter()
            .enumerate()
            .skip(at.saturating_sub(around()))
            .take(2 * around() + 1)
        {
            println!("  {} {bytes:>14} {from}", if i == at { '>' } else { ' ' });
        }
    }
    false
}
