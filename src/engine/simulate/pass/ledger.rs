//! Counts live bytes of a pass, multiplying blocks that stand for others by their number.

use std::collections::HashMap;
use std::ops::Range;

use super::block;
use crate::tape::log::{Event, Log};
use crate::tape::{Deduplication, Kind, Piece};

/// Bytes and multiplicities of the storages of a pass.
pub(super) struct Ledger<'a> {
    events: &'a [Event],
    /// Bytes of each storage; 0 if the pass does not both make and free it.
    sizes: Vec<u64>,
    /// Number of times that the block which makes each storage occurs; `None` for storages that no block makes.
    times: Vec<Option<u64>>,
    pieces: Vec<Piece>,
    /// Live bytes before the pass: the model, gradients of a micro-batch before, and storages that the pass leaves for
    /// good.
    pub base: u64,
    /// Bytes that the pass leaves for good.
    pub left: u64,
}

impl<'a> Ledger<'a> {
    /// Counts the part `range` of a log with deduplicated layers.
    pub fn new(log: &'a Log, deduplication: &Deduplication, range: Range<usize>) -> Self {
        let allocations = log.allocations.len();
        let mut sizes: Vec<u64> = log
            .allocations
            .iter()
            .map(|allocation| block(allocation.bytes))
            .collect();
        let pieces = deduplication.pieces(range.start, range.end, |place| place.event);
        let mut blocks: HashMap<usize, (usize, u64)> = HashMap::new();
        for piece in pieces.iter().filter(|piece| piece.is_block) {
            blocks.entry(piece.range.start).or_insert((piece.range.end, 0)).1 += piece.times;
        }
        let mut times = vec![None; allocations];
        for (&start, &(end, n)) in &blocks {
            let born = log.events[start..end].iter().filter(|event| event.is_alloc());
            born.for_each(|event| times[event.storage() as usize] = Some(n));
        }
        let comes = |place: usize| {
            let of = blocks.iter().find(|(start, (end, _))| (**start..*end).contains(&place));
            of.map_or(1, |(_, (_, n))| *n)
        };
        let accumulated = deduplication
            .accumulated()
            .iter()
            .map(|&(place, id)| sizes[id as usize] * comes(place));
        let accumulated: u64 = accumulated.sum();
        // Storages that are allocated and freed in the pass belong to it.
        let (mut born, mut dies) = (vec![false; allocations], vec![false; allocations]);
        let mut model = 0;
        for event in &log.events[..range.start] {
            let size = sizes[event.storage() as usize];
            model = if event.is_alloc() { model + size } else { model - size };
        }
        for (place, event) in range.clone().zip(&log.events[range]) {
            let id = event.storage() as usize;
            if event.is_alloc() {
                born[id] = true;
            } else if born[id] {
                dies[id] = true;
            } else {
                // A storage that the first pass replaces.
                model -= sizes[id] * comes(place);
            }
        }
        let mut left = 0;
        for (id, size) in sizes.iter_mut().enumerate() {
            if born[id] && !dies[id] {
                // A library has one workspace, no matter which block uses it first.
                let once = log.allocations[id].kind == Kind::Workspace;
                left += *size * if once { 1 } else { times[id].unwrap_or(1) };
            }
            if !(born[id] && dies[id]) {
                *size = 0;
            }
        }
        Self {
            events: &log.events,
            sizes,
            times,
            pieces,
            base: model + accumulated + left,
            left,
        }
    }

    /// Splits the pieces into those before an event and those from it on.
    pub fn split(&self, mark: usize) -> (Vec<Piece>, Vec<Piece>) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for piece in &self.pieces {
            let middle = mark.clamp(piece.range.start, piece.range.end);
            for (out, range) in [
                (&mut before, piece.range.start..middle),
                (&mut after, middle..piece.range.end),
            ] {
                if !range.is_empty() {
                    out.push(Piece { range, ..piece.clone() });
                }
            }
        }
        (before, after)
    }
}

/// Live bytes relative to those before the pass.
#[derive(Default)]
pub(super) struct Live {
    /// Current value.
    pub now: i64,
    /// Highest value so far.
    pub high: i64,
}

impl Live {
    /// Counts pieces one after the other. A storage from outside the blocks that a repeated block frees is freed by its
    /// last repetition.
    pub fn play(&mut self, ledger: &Ledger<'_>, pieces: &[Piece]) {
        for (at, piece) in pieces.iter().enumerate() {
            let comes_again = piece.is_block && pieces[at + 1..].iter().any(|other| other.range == piece.range);
            let alike = piece.times - u64::from(!comes_again);
            if alike > 0 {
                self.repeat(ledger.swing(piece, false), alike.cast_signed());
            }
            if !comes_again {
                self.repeat(ledger.swing(piece, true), 1);
            }
        }
    }

    fn repeat(&mut self, Swing { high, net }: Swing, times: i64) {
        let more = (times - 1) * net;
        self.high = self.high.max(self.now + high + more.max(0));
        self.now += net + more;
    }
}

impl Ledger<'_> {
    /// Change of live bytes over a piece; `last` is true for its last occurrence.
    fn swing(&self, piece: &Piece, last: bool) -> Swing {
        let mut swing = Swing::default();
        for event in &self.events[piece.range.clone()] {
            let id = event.storage() as usize;
            let size = self.sizes[id].cast_signed();
            let move_by = match (event.is_alloc(), self.times[id]) {
                (true, _) => size,
                // Each repetition frees the tensors that the block before it made.
                (false, Some(_)) if piece.is_block => -size,
                (false, Some(times)) => -size * times.cast_signed(),
                (false, None) if last => -size,
                (false, None) => 0,
            };
            swing.net += move_by;
            swing.high = swing.high.max(swing.net);
        }
        swing
    }
}

/// Change of live bytes over a piece: at its highest, and at the end.
#[derive(Default)]
struct Swing {
    high: i64,
    net: i64,
}
