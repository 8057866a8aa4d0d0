use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::Phase;
use crate::dtype::DType;
use crate::tape::dims::Dims;
use crate::tape::{Component, Kind};
use crate::units::Bytes;

/// A point of the step: the number of events (allocations and frees) that came before.
pub type Instant = usize;

/// One tensor that is live at an instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LiveTensor {
    /// What made it or what it is, such as `q_proj.weight` or `softmax output`.
    pub name: &'static str,
    /// Module path, such as `model.layers.3.self_attn`.
    #[serde(serialize_with = "as_text")]
    pub layer: Arc<str>,
    /// Vision tower, connector, language model, …
    pub component: Component,
    /// Weight, gradient, activation, …
    pub kind: Kind,
    /// Shape in elements.
    pub shape: Dims,
    /// Element type.
    pub dtype: DType,
    /// Bytes of the allocator's block.
    pub bytes: Bytes,
    /// Why it lives.
    #[serde(serialize_with = "as_text")]
    pub why: Arc<str>,
}

fn as_text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// Every allocation and free of one step, and what each tensor is.
///
/// Instants run from 0 (before the step) to `len()` (after its last event).
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Tensors that the events name.
    pub(crate) tensors: Vec<LiveTensor>,
    /// Live before the first event, as indices of `tensors`.
    pub(crate) initial: Vec<u32>,
    /// Index of a tensor, and whether it is born (or else dies).
    pub(crate) events: Vec<(u32, bool)>,
    /// Where each phase begins, in order.
    pub(crate) phases: Vec<(Phase, Instant)>,
}

impl Timeline {
    /// Number of events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Where each phase begins, in order.
    pub fn phases(&self) -> &[(Phase, Instant)] {
        &self.phases
    }

    /// The instant of the highest total; the first of equals.
    pub fn peak_instant(&self) -> Instant {
        let (mut best, mut best_total) = (0, 0);
        self.walk(|i, totals| {
            let total: u64 = totals.iter().sum();
            if total > best_total {
                (best, best_total) = (i, total);
            }
        });
        best
    }

    /// Live bytes by kind at an instant, in the order of [`Kind::ALL`].
    pub fn at(&self, instant: Instant) -> [(Kind, Bytes); Kind::COUNT] {
        let mut out = Kind::ALL.map(|k| (k, Bytes::ZERO));
        for t in self.live_indices(instant) {
            let t = &self.tensors[t as usize];
            out[t.kind as usize].1 += t.bytes;
        }
        out
    }

    /// All tensors live at an instant, largest first.
    pub fn live_at(&self, instant: Instant) -> Vec<&LiveTensor> {
        let mut live: Vec<_> = self
            .live_indices(instant)
            .into_iter()
            .map(|i| &self.tensors[i as usize])
            .collect();
        live.sort_by_key(|t| std::cmp::Reverse(t.bytes));
        live
    }

    /// The stacked curve by kind, reduced to at most `points` columns; a column holds the instant
    /// of the highest total within its span, so that no peak is lost. Columns come in time order.
    pub fn columns(&self, points: usize) -> Vec<(Instant, [Bytes; Kind::COUNT])> {
        let span = (self.events.len() + 1).div_ceil(points.max(1)).max(1);
        let mut out: Vec<(Instant, [Bytes; Kind::COUNT])> = Vec::new();
        let mut best_total = 0;
        self.walk(|i, totals| {
            let total: u64 = totals.iter().sum();
            let fresh = i % span == 0;
            if fresh || total > best_total {
                let column = (i, totals.map(Bytes::new));
                if fresh {
                    out.push(column);
                } else if let Some(last) = out.last_mut() {
                    *last = column;
                }
                best_total = total;
            }
        });
        out
    }

    fn walk(&self, mut visit: impl FnMut(Instant, &[u64; Kind::COUNT])) {
        let mut totals = [0u64; Kind::COUNT];
        for &t in &self.initial {
            let t = &self.tensors[t as usize];
            totals[t.kind as usize] += t.bytes.get();
        }
        visit(0, &totals);
        for (i, &(t, born)) in self.events.iter().enumerate() {
            let t = &self.tensors[t as usize];
            let slot = &mut totals[t.kind as usize];
            *slot = if born {
                *slot + t.bytes.get()
            } else {
                *slot - t.bytes.get()
            };
            visit(i + 1, &totals);
        }
    }

    fn live_indices(&self, instant: Instant) -> Vec<u32> {
        // A state that is made anew lives twice for a moment.
        let mut live = vec![0i32; self.tensors.len()];
        for &t in &self.initial {
            live[t as usize] += 1;
        }
        for &(t, born) in &self.events[..instant.min(self.events.len())] {
            live[t as usize] += if born { 1 } else { -1 };
        }
        (0..live.len() as u32).filter(|&i| live[i as usize] > 0).collect()
    }
}
