//! Attention of each segment of a sequence with itself, as vision towers for any image size run it: queries, keys and
//! values are split, each part attends, the results are joined.
//!
//! An image has hundreds of windows, each with ten or more small tensors. One operation records them all: segments of
//! one length are alike, so one of them is rehearsed on a tape of its own, and its allocations and frees are copied for
//! each.

mod rehearsal;
mod sums;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::rc::Rc;

use smallvec::smallvec;

use super::super::autograd::Grads;
use super::super::core::Tape;
use super::super::script::{Described, Script};
use super::super::storage::Storage;
use super::super::tensor::Tensor;
use super::super::work::{Launch, WorkItem};
use rehearsal::{Conditions, Rehearsal};

/// An attention in one operation: queries, keys and values, [1, heads, positions, width] each → [1,
/// positions, heads, width].
pub type Attend = dyn Fn(&Tape, [&Tensor; 3]) -> Tensor;

/// Segments of a sequence, and the rehearsals of them; one kind of attention uses it.
pub struct Cuts {
    lengths: Vec<u64>,
    /// Number of segments after which their lengths repeat, to the end: those of a sample.
    period: usize,
    rehearsed: RefCell<Vec<(Conditions, Rc<Rehearsals>)>>,
}

/// Rehearsal of a segment of each length; there are few lengths.
type Rehearsals = Vec<(u64, Rehearsal)>;

impl Cuts {
    /// Makes segments of these lengths.
    pub fn new(lengths: Vec<u64>) -> Self {
        Self {
            period: period(&lengths),
            lengths,
            rehearsed: RefCell::default(),
        }
    }

    /// Lengths of the segments of one period, in positions.
    fn one_period(&self) -> &[u64] {
        &self.lengths[..self.period]
    }

    /// Number of periods.
    fn periods(&self) -> u64 {
        (self.lengths.len() / self.period.max(1)) as u64
    }

    /// Positions of each segment.
    pub fn lengths(&self) -> &[u64] {
        &self.lengths
    }

    fn rehearsals(&self, t: &Tape, under: Conditions, attend: &Attend) -> Rc<Rehearsals> {
        if let Some(known) = self.known(&under) {
            return known;
        }
        let mut all = Rehearsals::new();
        for &n in &self.lengths {
            if !all.iter().any(|(known, _)| *known == n) {
                all.push((n, t.rehearse(&under, n, attend)));
            }
        }
        let all = Rc::new(all);
        self.rehearsed.borrow_mut().push((under, all.clone()));
        all
    }

    fn known(&self, under: &Conditions) -> Option<Rc<Rehearsals>> {
        let rehearsed = self.rehearsed.borrow();
        rehearsed
            .iter()
            .find(|(known, _)| known == under)
            .map(|(_, rehearsals)| rehearsals.clone())
    }
}

impl Tape {
    /// [1, heads, positions, width] each → [1, positions, heads, width], and the part of the segments' outputs that
    /// lives as long as the caller's list of them.
    pub fn attend_segments(&self, qkv: [&Tensor; 3], cuts: &Rc<Cuts>, attend: &Attend) -> (Tensor, Tensor) {
        let [q, k, v] = qkv.map(|x| self.parted(x));
        let mut rec = self.record("attention of segments", &[&q, &k, &v]);
        for x in [&q, &k, &v] {
            rec.save(self, x);
        }
        let under = Conditions::of(self, &q, rec.is_active());
        let rehearsals = cuts.rehearsals(self, under, attend);
        let [kept, listed] = if self.sums(&rehearsals) {
            self.sum_forward(&rehearsals, cuts)
        } else {
            self.write_forward(&rehearsals, cuts)
        };
        self.repeat_work(cuts.one_period().iter(), cuts.periods(), |n| {
            Some(&segment_of(&rehearsals, n)?.work[0])
        });
        rec.save(self, &held(kept, &q));
        // Autocast computes each part in its own type.
        let dtype = self.autocast_dtype().unwrap_or(q.dtype());
        let joined = self.empty([1, q.size(2), q.size(1), q.size(3)], dtype, "cat");
        let cuts = cuts.clone();
        let joined = rec.finish(self, joined, move |t, bw| {
            // A promise was made by a forward whose rehearsal kept its tensors.
            let rehearsals = cuts.known(&under.kept()).unwrap_or_default();
            t.segments_backward(&bw.saved[0], bw.saved[3].storage(), &rehearsals, &cuts)
        });
        (joined, held(listed, &q))
    }

    /// Records all segments; returns the storages that the graph keeps, and those that only the list of outputs keeps.
    fn write_forward(&self, rehearsals: &Rehearsals, cuts: &Cuts) -> [Storage; 2] {
        let (kept, listed) = (self.bundle(), self.bundle());
        let described = self.describe_all(rehearsals, |segment| &segment.forward);
        for &n in cuts.lengths() {
            let Some((segment, described)) = of_length(rehearsals, &described, n) else {
                continue;
            };
            if let Some(cast) = self.perform(&segment.forward, described, &[]) {
                kept.put(segment.kept.iter().map(|&i| cast.of(i, &[])));
                listed.put(segment.listed.iter().map(|&i| cast.of(i, &[])));
            }
        }
        [kept, listed]
    }

    /// Adds descriptions of the allocations in each length's script, in the current module.
    fn describe_all(&self, rehearsals: &Rehearsals, script: impl Fn(&Rehearsal) -> &Script) -> Vec<Described> {
        rehearsals
            .iter()
            .map(|(_, segment)| self.describe(script(segment)))
            .collect()
    }

    /// Records kernels and host ops of segments of these lengths, repeated `times` times.
    fn repeat_work<'a, 'r>(
        &self,
        lengths: impl Iterator<Item = &'a u64>,
        times: u64,
        work: impl Fn(u64) -> Option<&'r Vec<WorkItem>>,
    ) {
        let scope = self.scope_id();
        let gradient = self.is_gradient();
        self.items(|items| {
            let mut runs: Vec<(u64, u64)> = Vec::new();
            for &n in lengths {
                match runs.last_mut() {
                    Some((length, run)) if *length == n => *run += 1,
                    _ => runs.push((n, 1)),
                }
            }
            let here = |launch: &Launch| Launch {
                scope,
                gradient,
                ..*launch
            };
            let run = |(n, run): (u64, u64)| {
                let segment = work(n)?.iter().map(|item| item.map(&here)).collect();
                Some(WorkItem::Repeat(segment, run))
            };
            items.push(WorkItem::Repeat(runs.into_iter().filter_map(run).collect(), times));
        });
    }

    /// `torch.split`, whose backward joins the gradients of the parts.
    fn parted(&self, x: &Tensor) -> Tensor {
        let rec = self.record("SplitWithSizesBackward0", &[x]);
        let shape = *x.shape();
        rec.finish(self, x.alias(shape, *x.strides()), move |t, bw| {
            smallvec![Some(t.empty(shape, bw.grad().dtype(), "split backward"))]
        })
    }

    /// Runs from the last segment to the first; each frees the storages that forward kept of it.
    fn segments_backward(&self, q: &Tensor, kept: &Storage, rehearsals: &Rehearsals, cuts: &Cuts) -> Grads {
        let grads = if self.sums(rehearsals) {
            self.sum_backward(kept, rehearsals, cuts)
        } else {
            self.write_backward(kept, rehearsals, cuts)
        };
        self.repeat_work(cuts.one_period().iter().rev(), cuts.periods(), |n| {
            Some(&segment_of(rehearsals, n)?.work[1])
        });
        grads.into_iter().map(|grad| Some(held(grad, q))).collect()
    }

    /// Records the gradients of queries, keys and values.
    fn write_backward(&self, kept: &Storage, rehearsals: &Rehearsals, cuts: &Cuts) -> [Storage; 3] {
        let grads = [(); 3].map(|()| self.bundle());
        let described = self.describe_all(rehearsals, |segment| &segment.backward.script);
        let mut known = Vec::new();
        for &n in cuts.lengths().iter().rev() {
            let Some((segment, described)) = of_length(rehearsals, &described, n) else {
                continue;
            };
            kept.take(segment.kept.len(), &mut known);
            if let Some(cast) = self.perform(&segment.backward.script, described, &known) {
                for (grad, place) in grads.iter().zip(segment.backward.gradients) {
                    grad.put(place.map(|i| cast.of(i, &known)).into_iter());
                }
            }
        }
        grads
    }
}

/// Returns the rehearsal of a segment of `n` positions.
fn segment_of(rehearsals: &Rehearsals, n: u64) -> Option<&Rehearsal> {
    rehearsals
        .iter()
        .find(|(length, _)| *length == n)
        .map(|(_, segment)| segment)
}

/// Length of the shortest prefix that the whole repeats.
fn period(lengths: &[u64]) -> usize {
    let n = lengths.len();
    let repeats = |p: &usize| n.is_multiple_of(*p) && lengths[*p..] == lengths[..n - p];
    (1..=n).find(repeats).unwrap_or(n)
}

fn of_length<'a>(rehearsals: &'a Rehearsals, described: &[Described], n: u64) -> Option<(&'a Rehearsal, Described)> {
    let at = rehearsals.iter().position(|(length, _)| *length == n)?;
    Some((&rehearsals[at].1, described[at]))
}

/// Wraps a bundle in a tensor of the shape of `like`, so that it can be saved, held or passed on.
fn held(bundle: Storage, like: &Tensor) -> Tensor {
    Tensor::from_parts(bundle, *like.shape(), *like.strides(), like.dtype(), None)
}
