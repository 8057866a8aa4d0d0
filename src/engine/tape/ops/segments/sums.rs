//! Records segments as sums, for runs whose live bytes are counted without an allocator.
//!
//! An image has hundreds of windows, and a batch many times more; one storage in place of theirs makes a recording as
//! short as that of a model without them. Sizes are those of the allocator's blocks, so that the count is the same.

use super::super::super::core::Tape;
use super::super::super::dims::Dims;
use super::super::super::kind::Kind;
use super::super::super::log::{Allocation, Event, LUMP, StorageId};
use super::super::super::script::Swing;
use super::super::super::storage::Storage;
use super::super::super::why::Why;
use super::rehearsal::Rehearsal;
use super::{Cuts, Rehearsals};
use crate::dtype::DType;

impl Tape {
    /// Records hundreds of segments as one sum from now on, which is right for counting, but not for a replay through
    /// an allocator.
    pub fn sum_segments(&self) {
        self.0.sums_segments.set(true);
    }

    /// Allocates `bytes` bytes that stand for many tensors; nothing once the tape has stopped. They are freed by
    /// [`Self::dies`], or with the bundle that they are put into.
    fn lump(&self, bytes: u64) -> Option<StorageId> {
        (bytes > 0 && !self.0.stopped.get()).then(|| {
            self.0.log.borrow_mut().born(Allocation {
                bytes,
                shape: Dims::new(&[bytes]),
                dtype: DType::U8,
                name: LUMP,
                scope: self.scope_id(),
                kind: Kind::Temporary,
                why: Why::default(),
            })
        })
    }

    /// Frees storages without an owner.
    fn dies(&self, ids: impl IntoIterator<Item = StorageId>) {
        self.0.log.borrow_mut().events.extend(ids.into_iter().map(Event::free));
    }

    /// Returns true if segments are recorded as sums: when counting, and if all their storages are of the small pool,
    /// where every block is as large as its request.
    pub(super) fn sums(&self, rehearsals: &Rehearsals) -> bool {
        let is_small = |(_, segment): &(u64, Rehearsal)| {
            // Promised tensors are recomputed, and kept then.
            segment.forward.is_small() && segment.backward.script.is_small()
        };
        self.0.sums_segments.get() && rehearsals.iter().all(is_small)
    }

    /// Records all segments as sums; returns the storages that the graph keeps, and those that only the list of outputs
    /// keeps.
    pub(super) fn sum_forward(&self, rehearsals: &Rehearsals, cuts: &Cuts) -> [Storage; 2] {
        let bundles = [(); 2].map(|()| self.bundle());
        let mut swing = Swing::default();
        let mut bytes = [0; 2];
        let all: Vec<Sums<2>> = rehearsals.iter().map(Sums::forward).collect();
        for sums in cuts.lengths().iter().filter_map(|n| of_length(&all, *n)) {
            swing.then(sums.swing);
            (0..2).for_each(|i| bytes[i] += sums.left[i]);
        }
        self.swing(swing);
        for (bundle, bytes) in bundles.iter().zip(bytes) {
            bundle.put(self.lump(bytes).into_iter());
        }
        bundles
    }

    /// Records the gradients of queries, keys and values of all segments, and frees the storages that the graph kept.
    pub(super) fn sum_backward(&self, kept: &Storage, rehearsals: &Rehearsals, cuts: &Cuts) -> [Storage; 3] {
        let bundles = [(); 3].map(|()| self.bundle());
        let mut swing = Swing::default();
        let mut bytes = [0; 3];
        let all: Vec<Sums<3>> = rehearsals.iter().map(Sums::backward).collect();
        for sums in cuts.lengths().iter().rev().filter_map(|n| of_length(&all, *n)) {
            swing.then(sums.swing);
            (0..3).for_each(|i| bytes[i] += sums.left[i]);
        }
        self.swing(swing);
        let mut lump = Vec::new();
        kept.take(1, &mut lump);
        self.dies(lump);
        for (bundle, bytes) in bundles.iter().zip(bytes) {
            bundle.put(self.lump(bytes).into_iter());
        }
        bundles
    }

    /// Records a rise of live bytes that falls again.
    fn swing(&self, swing: Swing) {
        self.dies(self.lump(swing.high.max(0).cast_unsigned()));
    }
}

/// Change of live bytes over segments of one length.
struct Sums<const N: usize> {
    length: u64,
    swing: Swing,
    /// Bytes of each kind that stay live.
    left: [u64; N],
}

impl Sums<2> {
    fn forward((length, segment): &(u64, Rehearsal)) -> Self {
        let sizes = segment.forward.sizes(&[]);
        Self {
            length: *length,
            swing: segment.forward.swing(&sizes),
            left: [&segment.kept, &segment.listed].map(|numbers| numbers.iter().map(|&i| sizes[i as usize]).sum()),
        }
    }
}

impl Sums<3> {
    fn backward((length, segment): &(u64, Rehearsal)) -> Self {
        let forward = segment.forward.sizes(&[]);
        let kept: Vec<u64> = segment.kept.iter().map(|&i| forward[i as usize]).collect();
        let sizes = segment.backward.script.sizes(&kept);
        Self {
            length: *length,
            swing: segment.backward.script.swing(&sizes),
            left: segment
                .backward
                .gradients
                .map(|number| number.map_or(0, |i| sizes[i as usize])),
        }
    }
}

fn of_length<const N: usize>(all: &[Sums<N>], n: u64) -> Option<&Sums<N>> {
    all.iter().find(|sums| sums.length == n)
}
