//! Merges different keys of one quantity. Frameworks, callbacks and a person's prints all write into one log, which
//! then calls the same memory `GPU memory`, `mem` and `memory_allocated`.

use std::collections::BTreeSet;

use super::{MOST_SERIES, Series};
use crate::amount::unit;

/// Lines and steps at which each key occurred.
#[derive(Debug, Default)]
pub struct Wordings {
    /// By index of the series.
    occurrences: Vec<Occurrences>,
}

/// Lines and steps at which one key occurred.
#[derive(Debug, Clone, Default)]
struct Occurrences {
    /// Lines of its points, until these are thinned.
    lines: Vec<usize>,
    /// Steps named in its lines.
    steps: BTreeSet<u64>,
    /// Number of its lines that named a step.
    with_step: usize,
    /// Bit set of the other series that occurred in the same line as this one.
    beside: u32,
}

// `beside` has one bit for each series.
const _: () = assert!(MOST_SERIES <= 32);

/// Number of lines from which on a series keeps its own key: its lines and steps are not kept beyond, so that it cannot be told
/// whether they are another's too.
const MOST_LINES: usize = 10_000;

impl Wordings {
    /// Records that a line had readings of these series, and the step that it named.
    pub fn record(&mut self, line: usize, series: &[usize], step: Option<u64>) {
        let all = series.iter().fold(0, |all, &at| all | 1 << at);
        for &at in series {
            if self.occurrences.len() <= at {
                self.occurrences.resize(at + 1, Occurrences::default());
            }
            let own = &mut self.occurrences[at];
            own.beside |= all & !(1 << at);
            if own.lines.len() < MOST_LINES {
                own.lines.push(line);
                own.steps.extend(step);
                own.with_step += usize::from(step.is_some());
            }
        }
    }

    /// Merges series of one meaning if they can be one quantity: they never share a line or a step, and either all of
    /// them name steps or none does.
    pub fn merge(mut self, series: Vec<Series>) -> Vec<Series> {
        let mut out: Vec<(Series, Occurrences)> = Vec::new();
        // For each of `out`, the bit set of the series merged into it.
        let mut merged: Vec<u32> = Vec::new();
        for (at, series) in series.into_iter().enumerate() {
            let own = self.occurrences.get_mut(at).map(std::mem::take).unwrap_or_default();
            let same = (0..out.len()).find(|&known| {
                let (kept, of_kept) = &out[known];
                meaning(&kept.key) == meaning(&series.key)
                    && own.beside & merged[known] == 0
                    && of_kept.is_complete()
                    && own.is_complete()
                    && of_kept.has_steps() == own.has_steps()
                    && of_kept.steps.is_disjoint(&own.steps)
                    && kept.is_whole(of_kept)
                    && series.is_whole(&own)
            });
            match same {
                Some(known) => {
                    merged[known] |= 1 << at;
                    let (kept, of_kept) = &mut out[known];
                    kept.take(of_kept, series, own);
                }
                None => {
                    merged.push(1 << at);
                    out.push((series, own));
                }
            }
        }
        out.into_iter().map(|(series, _)| series).collect()
    }
}

impl Occurrences {
    /// Returns true if no line was left out.
    fn is_complete(&self) -> bool {
        self.lines.len() < MOST_LINES
    }

    /// Returns true if every line named a step.
    fn has_steps(&self) -> bool {
        self.with_step == self.lines.len()
    }
}

impl Series {
    /// Returns true if every point comes from one line, none thinned away.
    fn is_whole(&self, own: &Occurrences) -> bool {
        self.points.len() == own.lines.len()
    }

    /// Adds the points of another key, in the order of the log.
    fn take(&mut self, own: &mut Occurrences, other: Self, others: Occurrences) {
        let has_steps = own.has_steps();
        let points = own.lines.drain(..).zip(self.points.drain(..));
        let mut all: Vec<_> = points.chain(others.lines.into_iter().zip(other.points)).collect();
        all.sort_by_key(|&(line, _)| line);
        if !has_steps {
            // Points without steps were numbered separately for each key.
            (1..).zip(&mut all).for_each(|(step, (_, point))| point.step = step);
        }
        (own.lines, self.points) = all.into_iter().unzip();
        own.steps.extend(others.steps);
        own.with_step += others.with_step;
        self.is_unit_guessed |= other.is_unit_guessed;
    }
}

/// Meaning of a key: 0 for memory in use, 1 for reserved and 2 for peak memory, and the words that say more than that. Series
/// whose keys differ only in words such as `gpu` and `mem` have one meaning.
fn meaning(key: &str) -> (u8, Vec<&str>) {
    const SAME: [&str; 28] = [
        "gpu",
        "cuda",
        "device",
        "torch",
        "vram",
        "mem",
        "memory",
        "used",
        "usage",
        "use",
        "in",
        "the",
        "of",
        "is",
        "now",
        "current",
        "currently",
        "cur",
        "curr",
        "alloc",
        "allocated",
        "ma",
        "max",
        "peak",
        "reserved",
        "cached",
        "ca",
        "total",
    ];
    let kind = match key {
        key if key.contains("max") || key.contains("peak") => 2,
        key if key.contains("reserved") || key.contains("cached") => 1,
        key if words(key).any(|word| word == "ca") => 1,
        _ => 0,
    };
    let rest = words(key).filter(|word| !SAME.contains(word) && unit(word).is_none());
    let mut rest: Vec<&str> = rest.collect();
    rest.sort_unstable();
    (kind, rest)
}

fn words(key: &str) -> impl Iterator<Item = &str> {
    key.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
}
