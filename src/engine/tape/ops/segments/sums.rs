//! What segments hold, as its sum: for those who count live bytes and play no allocator.
//!
//! An image has hundreds of windows, and a batch as many times more; one storage in place of theirs makes a recording
//! as short as that of a model without them. Bytes are those of the allocator's blocks, so that counting comes to the
//! same.

use super::super::super::core::Tape;
use super::super::super::dims::Dims;
use super::super::super::kind::Kind;
use super::super::super::log::{Birth, Event, LUMP, StorageId};
use super::super::super::script::Swing;
use super::super::super::storage::Storage;
use super::super::super::why::Why;
use super::rehearsal::Rehearsal;
use super::{Cuts, Rehearsals};
use crate::dtype::DType;

impl Tape {
    /// Writes down what hundreds of segments hold as its sum from here on: right to be counted, not to be played
    /// through an allocator.
    pub fn sum_segments(&self) {
        self.0.sums_segments.set(true);
    }

    /// Memory of so many bytes that stands for that of many tensors; nothing while nothing is made. It dies by
    /// [`Self::dies`], or with the bundle that it is put into.
    fn lump(&self, bytes: u64) -> Option<StorageId> {
        (bytes > 0 && !self.0.stopped.get()).then(|| {
            self.0.log.borrow_mut().born(Birth {
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

    /// Memory that nothing owns dies.
    fn dies(&self, ids: impl IntoIterator<Item = StorageId>) {
        self.0.log.borrow_mut().events.extend(ids.into_iter().map(Event::death));
    }

    /// Whether segments are written down as sums: where someone counts, and all of their memory is of the small pool,
    /// of which every block is as large as what it serves.
    pub(super) fn sums(&self, rehearsals: &Rehearsals) -> bool {
        let is_small = |(_, segment): &(u64, Rehearsal)| {
            // What is promised is asked for once more, and kept then.
            segment.forward.is_small() && segment.backward.script.is_small()
        };
        self.0.sums_segments.get() && rehearsals.iter().all(is_small)
    }

    /// What the graph keeps of all segments, and what only the list of outputs does.
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

    /// Gradients of queries, keys and values of all segments; what the graph kept of them dies.
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

    /// Live bytes rise and fall again.
    fn swing(&self, swing: Swing) {
        self.dies(self.lump(swing.high.max(0).cast_unsigned()));
    }
}

/// What segments of one length do to live bytes.
struct Sums<const N: usize> {
    length: u64,
    swing: Swing,
    /// Bytes of each kind that are left.
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
