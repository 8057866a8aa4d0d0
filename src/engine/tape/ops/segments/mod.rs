//! Attention of each segment of a sequence with itself, as vision towers of any image size run it:
//! queries, keys and values split, an attention of each part, the results joined.
//!
//! An image has hundreds of windows, each with ten or more small tensors. They are written down by one
//! operation: segments of one length do alike, so one of them is rehearsed on a tape of its own, and
//! its births and deaths are written down for each.

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
use super::super::work::{Item, Launch};
use rehearsal::{Conditions, Rehearsal};

/// An attention in one operation: queries, keys and values, [1, heads, positions, width] each → [1,
/// positions, heads, width].
pub type Attend = dyn Fn(&Tape, [&Tensor; 3]) -> Tensor;

/// How a sequence is cut, and what is known of its parts; one kind of attention uses it.
pub struct Cuts {
    lengths: Vec<u64>,
    /// Segments after which lengths come again in the same order, to the end: those of a sample.
    period: usize,
    rehearsed: RefCell<Vec<(Conditions, Rc<Rehearsals>)>>,
}

/// What segments of each length write down; there are few lengths.
type Rehearsals = Vec<(u64, Rehearsal)>;

impl Cuts {
    /// Segments of these lengths.
    pub fn new(lengths: Vec<u64>) -> Self {
        Self {
            period: period(&lengths),
            lengths,
            rehearsed: RefCell::default(),
        }
    }

    /// Positions of the segments that come again and again.
    fn one_period(&self) -> &[u64] {
        &self.lengths[..self.period]
    }

    /// How often they come.
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
    /// [1, heads, positions, width] each → [1, positions, heads, width], and what of
    /// the segments' outputs lives as long as the caller's list of them.
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
        // autocast computes each part in its own type
        let dtype = self.autocast_dtype().unwrap_or(q.dtype());
        let joined = self.empty([1, q.size(2), q.size(1), q.size(3)], dtype, "cat");
        let cuts = cuts.clone();
        let joined = rec.finish(self, joined, move |t, bw| {
            // a promise was kept by a forward that rehearsed for it
            let rehearsals = cuts.known(&under.kept()).unwrap_or_default();
            t.segments_backward(&bw.saved[0], bw.saved[3].storage(), &rehearsals, &cuts)
        });
        (joined, held(listed, &q))
    }

    /// What the graph keeps of each segment, and what only the list of outputs does.
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

    /// What a script of each length gives birth to in the module that is running.
    fn describe_all(&self, rehearsals: &Rehearsals, script: impl Fn(&Rehearsal) -> &Script) -> Vec<Described> {
        rehearsals
            .iter()
            .map(|(_, segment)| self.describe(script(segment)))
            .collect()
    }

    /// What segments of these lengths make GPU and host do, all of it so many times.
    fn repeat_work<'a, 'r>(
        &self,
        lengths: impl Iterator<Item = &'a u64>,
        times: u64,
        work: impl Fn(u64) -> Option<&'r Vec<Item>>,
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
                Some(Item::Repeat(segment, run))
            };
            items.push(Item::Repeat(runs.into_iter().filter_map(run).collect(), times));
        });
    }

    /// `torch.split`: its backward joins the gradients of the parts.
    fn parted(&self, x: &Tensor) -> Tensor {
        let rec = self.record("SplitWithSizesBackward0", &[x]);
        let shape = *x.shape();
        rec.finish(self, x.alias(shape, *x.strides()), move |t, bw| {
            smallvec![Some(t.empty(shape, bw.grad().dtype(), "split backward"))]
        })
    }

    /// From the last segment to the first; each lets go of what forward kept of it.
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

    /// Gradients of queries, keys and values.
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

/// What a segment of a length writes down.
fn segment_of(rehearsals: &Rehearsals, n: u64) -> Option<&Rehearsal> {
    rehearsals
        .iter()
        .find(|(length, _)| *length == n)
        .map(|(_, segment)| segment)
}

/// The shortest beginning that the whole repeats.
fn period(lengths: &[u64]) -> usize {
    let n = lengths.len();
    let repeats = |p: &usize| n.is_multiple_of(*p) && lengths[*p..] == lengths[..n - p];
    (1..=n).find(repeats).unwrap_or(n)
}

fn of_length<'a>(rehearsals: &'a Rehearsals, described: &[Described], n: u64) -> Option<(&'a Rehearsal, Described)> {
    let at = rehearsals.iter().position(|(length, _)| *length == n)?;
    Some((&rehearsals[at].1, described[at]))
}

/// A bundle as a tensor that is saved, held or passed on like one of the shape of `like`.
fn held(bundle: Storage, like: &Tensor) -> Tensor {
    Tensor::from_parts(bundle, *like.shape(), *like.strides(), like.dtype(), None)
}
