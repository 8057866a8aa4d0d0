//! Rehearses one segment's attention on a tape of its own.

use std::cell::RefCell;
use std::rc::Rc;

use smallvec::smallvec;

use super::super::super::core::Tape;
use super::super::super::script::Script;
use super::super::super::tensor::Tensor;
use super::super::super::work::{HostOp, WorkItem};
use super::Attend;
use crate::dtype::DType;

/// Handling of the tensors that forward saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nothing is saved, because nothing before it is trained.
    Forgotten,
    /// Saved tensors are promised to be recomputed.
    Promised,
    /// Saved tensors are kept for backward.
    Kept,
}

/// Conditions that decide a segment's events, besides its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Conditions {
    heads: u64,
    width: u64,
    dtype: DType,
    autocast: Option<DType>,
    saved: Fate,
}

/// Events and work of one segment.
pub(super) struct Rehearsal {
    pub forward: Script,
    /// Kernels and host ops of forward and backward; empty unless requested.
    pub work: [Vec<WorkItem>; 2],
    /// Numbers of forward's storages that the graph keeps.
    pub kept: Vec<u32>,
    /// Numbers of forward's storages that only the list of outputs keeps.
    pub listed: Vec<u32>,
    pub backward: BackwardScript,
}

/// Backward of a segment; its known storages are those that the graph kept.
#[derive(Default)]
pub(super) struct BackwardScript {
    pub script: Script,
    /// Numbers of the storages that are the gradients of queries, keys and values.
    pub gradients: [Option<u32>; 3],
}

impl Conditions {
    /// Returns the conditions of queries [1, heads, positions, width]; `trained` is true if backward will follow.
    pub fn of(t: &Tape, q: &Tensor, trained: bool) -> Self {
        Self {
            heads: q.size(1),
            width: q.size(3),
            dtype: q.dtype(),
            autocast: t.autocast_dtype(),
            saved: match (trained, t.keeps_saved()) {
                (false, _) => Fate::Forgotten,
                (true, false) => Fate::Promised,
                (true, true) => Fate::Kept,
            },
        }
    }

    /// Returns the conditions with saved tensors kept.
    pub fn kept(self) -> Self {
        Self {
            saved: Fate::Kept,
            ..self
        }
    }
}

/// Receiver of a gradient, in any layout.
type Slot = Rc<RefCell<Option<Tensor>>>;

impl Tape {
    /// Rehearses `attend` on a segment of `n` positions.
    pub(super) fn rehearse(&self, under: &Conditions, n: u64, attend: &Attend) -> Rehearsal {
        let t = Self::new(self.gpu());
        if self.0.working.get() {
            t.write_work();
        }
        let gradients: [Slot; 3] = Default::default();
        let parts = gradients.each_ref().map(|slot| t.part(under, n, slot));
        let run = || t.autocast(under.autocast, || attend(&t, parts.each_ref()));
        let start = t.mark();
        let work_start = t.work_mark();
        let out = if under.saved == Fate::Promised {
            t.promising(run)
        } else {
            run()
        };
        let end = t.mark();
        let work_end = t.work_mark();
        let mut rehearsal = if under.saved == Fate::Kept {
            t.rehearse_backward(&gradients, out, start..end)
        } else {
            let forward = Script::of(&t.take_log(), start..end, &[], None);
            Rehearsal {
                work: Default::default(),
                kept: Vec::new(),
                listed: forward.alive.clone(),
                forward,
                backward: BackwardScript::default(),
            }
        };
        let mut work = t.take_work();
        // The seed, and joining the only part, belong to the rehearsal and not to the segment.
        let backward = work
            .iter()
            .skip(work_end)
            .position(|item| matches!(item, WorkItem::HostOp(HostOp::Node)));
        rehearsal.work[1] = backward.map_or_else(Vec::new, |at| work.split_off(work_end + at));
        rehearsal.work[0] = work[work_start.min(work.len())..work_end.min(work.len())].to_vec();
        if let Some(failure) = t.failure() {
            self.fail(|| failure);
        }
        rehearsal
    }

    /// Makes queries, keys or values of `n` positions, in memory as [positions, heads, width].
    fn part(&self, under: &Conditions, n: u64, gradient: &Slot) -> Tensor {
        let x = self.empty([1, n, under.heads, under.width], under.dtype, "part");
        if under.saved == Fate::Forgotten {
            return self.transpose(&x, 1, 2);
        }
        let x = self.transpose(&self.require_grad(&x), 1, 2);
        let rec = self.record("arrival of a gradient", &[&x]);
        let slot = gradient.clone();
        rec.finish(self, x.alias(*x.shape(), *x.strides()), move |_, bw| {
            *slot.borrow_mut() = Some(bw.grad().clone());
            smallvec![None]
        })
    }

    fn rehearse_backward(&self, gradients: &[Slot; 3], out: Tensor, forward: std::ops::Range<usize>) -> Rehearsal {
        let joined = self.cat(&[&out], 1);
        drop(out);
        let start = self.mark();
        self.backward(&joined);
        let end = self.mark();
        let gradients = gradients.each_ref().map(|slot| slot.borrow().as_ref()?.storage().id());
        let log = self.take_log();
        let graph = Script::of(&log, forward.start..start, &[], None).alive;
        let forward = Script::of(&log, forward, &[], None);
        let (kept, listed): (Vec<u32>, Vec<u32>) = forward.alive.iter().partition(|i| graph.contains(i));
        let known: Vec<_> = kept.iter().map(|&i| forward.storages[i as usize]).collect();
        let seed = log.events[start].storage();
        let script = Script::of(&log, start..end, &known, Some(seed)).of_temporaries();
        let gradients = gradients.map(|id| script.number_of(id?));
        Rehearsal {
            forward,
            work: Default::default(),
            kept,
            listed,
            backward: BackwardScript { script, gradients },
        }
    }
}
