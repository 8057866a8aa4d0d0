//! Merges different keys of one quantity. Frameworks, callbacks and a person's prints all write into one log, which
//! then calls the same memory `GPU memory`, `mem` and `memory_allocated`.

use std::collections::BTreeSet;

use super::{MOST_SERIES, Series};
use crate::amount::unit;

/// Lines and steps at which each key occurred.
#[derive(Debug, Default)]
pub struct Wordings {
    /// Occurrences by series.
    met: Vec<Met>,
}

/// Lines and steps at which one key occurred.
#[derive(Debug, Clone, Default)]
struct Met {
    /// Lines of its points, until these are thinned.
    lines: Vec<usize>,
    /// Steps named in its lines.
    steps: BTreeSet<u64>,
    /// Number of its lines that named a step.
    with_step: usize,
    /// Bit set of the series that occurred in the same line.
    beside: u32,
}

// `beside` has one bit for each series.
const _: () = assert!(MOST_SERIES <= 32);

/// Number of lines beyond which a series keeps its own key.
const MOST_LINES: usize = 10_000;

impl Wordings {
    /// Records that a line had readings of these series, and the step that it named.
    pub fn met(&mut self, line: usize, series: &[usize], step: Option<u64>) {
        let all = series.iter().fold(0, |all, &at| all | 1 << at);
        for &at in series {
            if self.met.len() <= at {
                self.met.resize(at + 1, Met::default());
            }
            let met = &mut self.met[at];
            met.beside |= all & !(1 << at);
            if met.lines.len() < MOST_LINES {
                met.lines.push(line);
                met.steps.extend(step);
                met.with_step += usize::from(step.is_some());
            }
        }
    }

    /// Merges series of one meaning if they can be one quantity: they never share a line or a step, and either all of
    /// them name steps or none does.
    pub fn merge(mut self, series: Vec<Series>) -> Vec<Series> {
        let mut out: Vec<(Series, Met)> = Vec::new();
        let mut of: Vec<u32> = Vec::new();
        for (at, series) in series.into_iter().enumerate() {
            let met = self.met.get_mut(at).map(std::mem::take).unwrap_or_default();
            let same = (0..out.len()).find(|&known| {
                let (kept, kept_met) = &out[known];
                meaning(&kept.key) == meaning(&series.key)
                    && met.beside & of[known] == 0
                    && kept_met.is_all()
                    && met.is_all()
                    && kept_met.has_steps() == met.has_steps()
                    && kept_met.steps.is_disjoint(&met.steps)
                    && kept.is_whole(kept_met)
                    && series.is_whole(&met)
            });
            match same {
                Some(known) => {
                    of[known] |= 1 << at;
                    let (kept, kept_met) = &mut out[known];
                    kept.take(kept_met, series, met);
                }
                None => {
                    of.push(1 << at);
                    out.push((series, met));
                }
            }
        }
        out.into_iter().map(|(series, _)| series).collect()
    }
}

impl Met {
    fn is_all(&self) -> bool {
        self.lines.len() < MOST_LINES
    }

    fn has_steps(&self) -> bool {
        self.with_step == self.lines.len()
    }
}

impl Series {
    /// Returns true if every point comes from one line, none thinned away.
    fn is_whole(&self, met: &Met) -> bool {
        self.points.len() == met.lines.len()
    }

    /// Adds the points of another key, in the order of the log.
    fn take(&mut self, met: &mut Met, other: Self, others: Met) {
        let has_steps = met.has_steps();
        let own = met.lines.drain(..).zip(self.points.drain(..));
        let mut all: Vec<_> = own.chain(others.lines.into_iter().zip(other.points)).collect();
        all.sort_by_key(|&(line, _)| line);
        if !has_steps {
            // Points without steps were numbered separately for each key.
            (1..).zip(&mut all).for_each(|(step, (_, point))| point.step = step);
        }
        (met.lines, self.points) = all.into_iter().unzip();
        met.steps.extend(others.steps);
        met.with_step += others.with_step;
        self.is_unit_guessed |= other.is_unit_guessed;
    }
}

/// Meaning of a key: its rank, and the words that say more than "device memory in use".
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
    let rank = match key {
        key if key.contains("max") || key.contains("peak") => 2,
        key if key.contains("reserved") || key.contains("cached") => 1,
        key if words(key).any(|word| word == "ca") => 1,
        _ => 0,
    };
    let rest = words(key).filter(|word| !SAME.contains(word) && unit(word).is_none());
    let mut rest: Vec<&str> = rest.collect();
    rest.sort_unstable();
    (rank, rest)
}

fn words(key: &str) -> impl Iterator<Item = &str> {
    key.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
}
