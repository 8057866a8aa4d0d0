//! Timeline of one step: every allocation and free, and the tensors live at any instant.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::describe::Describe;
use super::{BlockBytes, Phase};
use crate::dtype::DType;
use crate::order::sort_by_key;
use crate::tape::dims::Dims;
use crate::tape::log::{Event, Log, StorageId};
use crate::tape::{Component, Kind, Why};
use crate::units::Bytes;

/// A point of the step: the number of events (allocations and frees) before it.
pub type Instant = usize;

/// One tensor that is live at an instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveTensor {
    /// Name of the tensor or of the operation that made it, such as `q_proj.weight` or `softmax output`.
    pub name: Cow<'static, str>,
    /// Module path, such as `model.layers.3.self_attn`.
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
    /// Reason that it is live.
    pub why: Why,
}

/// Every allocation and free of one step, with a description of each tensor.
///
/// Instants run from 0 (before the step) to `len()` (after its last event). A cheap handle: clones share the recording,
/// and descriptions of tensors are made on request.
#[derive(Debug, Clone, Default)]
pub struct Timeline(Arc<Recorded>);

/// Data behind a timeline.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// Descriptions of the storages.
    pub log: Log,
    /// Allocations and frees of the step.
    pub events: Vec<Event>,
    /// Storages that live before the first event.
    pub initial: Vec<StorageId>,
    /// Bytes of each storage's block.
    pub block_bytes: BlockBytes,
    /// First instant of each phase, in order.
    pub phases: Vec<(Phase, Instant)>,
    /// The instant of the highest total; the first of equals.
    pub peak: Instant,
    /// Parameters, each with true if it is trained.
    pub parameters: Vec<(StorageId, bool)>,
}

impl Timeline {
    pub(crate) fn new(recorded: Recorded) -> Self {
        Self(Arc::new(recorded))
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.0.events.len()
    }

    /// Returns true if the timeline has no events.
    pub fn is_empty(&self) -> bool {
        self.0.events.is_empty()
    }

    /// First instant of each phase, in order.
    pub fn phases(&self) -> &[(Phase, Instant)] {
        &self.0.phases
    }

    /// The instant of the highest total; the first of equals.
    pub fn peak_instant(&self) -> Instant {
        self.0.peak
    }

    /// Live bytes by kind at an instant, in the order of [`Kind::ALL`].
    pub fn at(&self, instant: Instant) -> [(Kind, Bytes); Kind::COUNT] {
        let mut out = Kind::ALL.map(|k| (k, Bytes::ZERO));
        for id in self.live_ids(instant) {
            out[self.kind(id) as usize].1 += self.bytes(id);
        }
        out
    }

    /// The `most` largest tensors live at an instant, largest first.
    pub fn largest_at(&self, instant: Instant, most: usize) -> Vec<LiveTensor> {
        let mut ids = self.live_ids(instant);
        sort_by_key(&mut ids, |&id| Reverse(self.bytes(id)));
        ids.truncate(most);
        let mut describe = Describe::new(&self.0.log);
        ids.into_iter().map(|id| describe.tensor(id, self.bytes(id))).collect()
    }

    /// Tensors allocated in the step, in order, whose block size satisfies `of`.
    pub fn born(&self, of: impl Fn(Bytes) -> bool) -> impl Iterator<Item = LiveTensor> {
        let mut describe = Describe::new(&self.0.log);
        let allocations = self.0.events.iter().filter(|event| event.is_alloc());
        let ids = allocations.map(|event| event.storage());
        ids.filter(move |&id| of(self.bytes(id)))
            .map(move |id| describe.tensor(id, self.bytes(id)))
    }

    /// Number of tensors live at an instant, and their bytes.
    pub fn total_at(&self, instant: Instant) -> (usize, Bytes) {
        let ids = self.live_ids(instant);
        (ids.len(), ids.iter().map(|&id| self.bytes(id)).sum())
    }

    /// Live bytes by kind over time, reduced to at most `points` columns; a column holds the instant of the highest
    /// total within its span, so that no peak is lost. Columns come in time order.
    pub fn columns(&self, points: usize) -> Vec<(Instant, [Bytes; Kind::COUNT])> {
        let span = (self.len() + 1).div_ceil(points.max(1)).max(1);
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

    fn kind(&self, id: StorageId) -> Kind {
        self.0.log.allocations[id as usize].kind
    }

    fn bytes(&self, id: StorageId) -> Bytes {
        Bytes::new(self.0.block_bytes.of(id))
    }

    pub(super) fn walk(&self, mut visit: impl FnMut(Instant, &[u64; Kind::COUNT])) {
        let mut totals = [0u64; Kind::COUNT];
        for &id in &self.0.initial {
            totals[self.kind(id) as usize] += self.bytes(id).get();
        }
        visit(0, &totals);
        for (i, event) in self.0.events.iter().enumerate() {
            let id = event.storage();
            let slot = &mut totals[self.kind(id) as usize];
            let bytes = self.bytes(id).get();
            *slot = if event.is_alloc() { *slot + bytes } else { *slot - bytes };
            visit(i + 1, &totals);
        }
    }

    pub(super) fn recorded(&self) -> &Recorded {
        &self.0
    }

    pub(super) fn live_ids(&self, instant: Instant) -> Vec<StorageId> {
        // A state that is made anew is live twice for a moment.
        let mut live = vec![0i8; self.0.log.allocations.len()];
        for &id in &self.0.initial {
            live[id as usize] += 1;
        }
        for event in &self.0.events[..instant.min(self.len())] {
            live[event.storage() as usize] += if event.is_alloc() { 1 } else { -1 };
        }
        (0..live.len() as StorageId).filter(|&i| live[i as usize] > 0).collect()
    }
}
