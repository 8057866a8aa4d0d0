//! Describes in text the differences between two records beyond noise.

use vramscope_benchmark::{Change, Comparison, Part, Record};

use super::show::{time, why};
use crate::output::list::{self, Edge};

/// Lists kernels whose time changed by more than both spreads explain, and kernels that were added, removed, or stopped
/// working, with the number of unchanged ones.
pub fn text(old: &Record, new: &Record) -> String {
    let Comparison {
        changes,
        same,
        came,
        gone,
        machine,
    } = Comparison::of(old, new);
    let rows: Vec<_> = changes.iter().map(cells).collect();
    let mut text = String::from("\n");
    if !rows.is_empty() {
        let heads = [
            ("changed beyond noise", Edge::Left),
            ("before", Edge::Right),
            ("now", Edge::Right),
            ("change", Edge::Right),
        ];
        text += &list::render(heads, &rows);
    }
    text += &format!("{} changed, {same} as before", rows.len());
    if came + gone > 0 {
        text += &format!(", {came} only now, {gone} only before");
    }
    let (beyond, least) = (Comparison::BEYOND, 100.0 * Comparison::LEAST);
    text += &format!(". Noise: {beyond} standard deviations of both runs together, and {least}%.\n");
    for differs in machine {
        let (what, absent) = match differs.what {
            Part::Card => ("card", "unknown"),
            Part::Driver => ("driver", "unknown"),
            Part::Library(name) => (name, "none"),
        };
        let [before, now] = [differs.before, differs.now].map(|side| side.unwrap_or(absent));
        text += &format!("note: {what}: {before} before, {now} now\n");
    }
    text
}

fn cells(change: &Change<'_>) -> [String; 4] {
    let side = |ns: Option<u64>| ns.map_or_else(|| "-".into(), time);
    let change_in_words = match (change.ratio(), change.now_ns) {
        (Some(ratio), _) => format!("{:+.1}%", 100.0 * (ratio - 1.0)),
        (None, Some(_)) => "runs now".into(),
        (None, None) => why(change.outcome),
    };
    [
        change.kernel.label(),
        side(change.before_ns),
        side(change.now_ns),
        change_in_words,
    ]
}
