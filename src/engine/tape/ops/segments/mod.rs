//! Attention of each segment of a sequence with itself, as vision towers of any image size run it:
//! queries, keys and values split, an attention of each part, the results joined.
//!
//! An image has hundreds of windows, each with ten or more small tensors. They are written down by one
//! operation: segments of one length do alike, so one of them is rehearsed on a tape of its own, and
//! its births and deaths are written down for each.

mod rehearsal;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::rc::Rc;

use smallvec::smallvec;

use super::super::autograd::Grads;
use super::super::core::{Storage, Tape};
use super::super::script::{Described, Script};
use super::super::tensor::Tensor;
use super::super::work::{Item, Launch};
use rehearsal::{Conditions, Rehearsal};

/// An attention in one operation: queries, keys and values, [1, heads, positions, width] each → [1,
/// positions, heads, width].
pub type Attend = dyn Fn(&Tape, [&Tensor; 3]) -> Tensor;

/// How a sequence is cut, and what is known of its parts; one kind of attention uses it.
pub struct Cuts {
    lengths: Vec<u64>,
    rehearsed: RefCell<Vec<(Conditions, Rc<Rehearsals>)>>,
}

/// What segments of each length write down; there are few lengths.
type Rehearsals = Vec<(u64, Rehearsal)>;

impl Cuts {
    /// Segments of these lengths.
    pub fn new(lengths: Vec<u64>) -> Self {
        Self {
            lengths,
            rehearsed: RefCell::default(),
        }
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
        let (kept, listed) = (self.bundle(), self.bundle());
        let described = self.describe_all(&rehearsals, |segment| &segment.forward);
        for &n in cuts.lengths() {
            let Some((segment, described)) = of_length(&rehearsals, &described, n) else {
                continue;
            };
            if let Some(cast) = self.perform(&segment.forward, described, &[]) {
                self.repeat_work(&segment.work[0], false);
                kept.put(segment.kept.iter().map(|&i| cast.of(i, &[])));
                listed.put(segment.listed.iter().map(|&i| cast.of(i, &[])));
            }
        }
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

    /// What a script of each length gives birth to in the module that is running.
    fn describe_all(&self, rehearsals: &Rehearsals, script: impl Fn(&Rehearsal) -> &Script) -> Vec<Described> {
        rehearsals
            .iter()
            .map(|(_, segment)| self.describe(script(segment)))
            .collect()
    }

    /// What a segment makes GPU and host do, once more.
    fn repeat_work(&self, work: &[Item], gradient: bool) {
        let scope = self.scope_id();
        self.items(|items| {
            items.extend(work.iter().map(|item| match item {
                Item::Launch(launch) => Item::Launch(Launch {
                    scope,
                    gradient,
                    ..*launch
                }),
                other => *other,
            }));
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
        let grads = [(); 3].map(|()| self.bundle());
        let described = self.describe_all(rehearsals, |segment| &segment.backward.script);
        let mut known = Vec::new();
        for &n in cuts.lengths().iter().rev() {
            let Some((segment, described)) = of_length(rehearsals, &described, n) else {
                continue;
            };
            kept.take(segment.kept.len(), &mut known);
            if let Some(cast) = self.perform(&segment.backward.script, described, &known) {
                self.repeat_work(&segment.work[1], true);
                for (grad, place) in grads.iter().zip(segment.backward.gradients) {
                    grad.put(place.map(|i| cast.of(i, &known)).into_iter());
                }
            }
        }
        grads.into_iter().map(|grad| Some(held(grad, q))).collect()
    }
}

fn of_length<'a>(rehearsals: &'a Rehearsals, described: &[Described], n: u64) -> Option<(&'a Rehearsal, Described)> {
    let at = rehearsals.iter().position(|(length, _)| *length == n)?;
    Some((&rehearsals[at].1, described[at]))
}

/// A bundle as a tensor that is saved, held or passed on like one of the shape of `like`.
fn held(bundle: Storage, like: &Tensor) -> Tensor {
    Tensor::from_parts(bundle, *like.shape(), *like.strides(), like.dtype(), None)
}
