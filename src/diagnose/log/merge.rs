//! One quantity under several wordings: a log that a framework writes, a callback adds to and a person prints
//! into says `GPU memory`, `mem` and `memory_allocated` of the same thing.

use std::collections::BTreeSet;

use super::{MOST_SERIES, Series};
use crate::amount::unit;

/// Where each wording was met.
#[derive(Debug, Default)]
pub struct Wordings {
    /// By series.
    met: Vec<Met>,
}

/// Where one wording was met.
#[derive(Debug, Clone, Default)]
struct Met {
    /// Lines, as long as its points are not thinned.
    lines: Vec<usize>,
    /// Steps that a line named.
    steps: BTreeSet<u64>,
    /// How many of its lines named a step.
    with_step: usize,
    /// Series that stood in one line with it.
    beside: u32,
}

// A bit for each series.
const _: () = assert!(MOST_SERIES <= 32);

/// More lines than this are one wording that goes on.
const MOST_LINES: usize = 10_000;

impl Wordings {
    /// A line with readings of these series, and the step that it names.
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

    /// Puts series of one meaning together where they cannot be two quantities: never in one line, never of
    /// the same step, and all of them with steps or all without.
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
    /// Whether each of its points is from one line.
    fn is_whole(&self, met: &Met) -> bool {
        self.points.len() == met.lines.len()
    }

    /// Puts in what another wording has, in the order of the log.
    fn take(&mut self, met: &mut Met, other: Self, others: Met) {
        let has_steps = met.has_steps();
        let own = met.lines.drain(..).zip(self.points.drain(..));
        let mut all: Vec<_> = own.chain(others.lines.into_iter().zip(other.points)).collect();
        all.sort_by_key(|&(line, _)| line);
        if !has_steps {
            // They were counted, each wording for itself.
            (1..).zip(&mut all).for_each(|(step, (_, point))| point.step = step);
        }
        (met.lines, self.points) = all.into_iter().unzip();
        met.steps.extend(others.steps);
        met.with_step += others.with_step;
        self.is_unit_guessed |= other.is_unit_guessed;
    }
}

/// What a key means: its rank, and the words that do not just say "memory of the device in use".
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
