//! Layer deduplication: of a stack's equal blocks, one runs for all.
//!
//! The events of a block follow from its kind and its neighbours': its tensors live until the next block has run, and
//! backward comes from there. So of blocks with the same kinds before and after them one is run. Where a run is only
//! counted, [`Deduplication::pieces`] returns the number of repetitions of each part of the recording; `simulate/pass.rs`
//! checks the sums against what must be left at the end. Where every event is wanted, `tape/unroll` writes them.

use std::ops::Range;

use super::core::Tape;
use super::log::StorageId;
use super::tensor::Tensor;

/// A position in the recording: among events, and among work items.
#[derive(Debug, Clone, Copy, Default)]
pub struct Position {
    /// Number of events so far.
    pub event: usize,
    /// Number of work items so far.
    pub item: usize,
    /// Number of storages so far.
    pub(super) storage: usize,
    /// Number of modules so far.
    pub(super) scope: usize,
}

/// One stack, of which only some blocks ran.
#[derive(Debug, Default)]
pub(super) struct Stack {
    /// For each block, the one that ran in its place, by its index among those that ran.
    pub(super) representatives: Vec<usize>,
    /// Start of each block that ran in forward, then the end of the last one.
    pub(super) forward: Vec<Position>,
    /// Positions at which backward, which begins at the end, has passed each of these.
    pub(super) backward: Vec<Position>,
    /// Number of the graph's nodes at each of them.
    pub(super) nodes: Vec<u64>,
}

/// Layer deduplication of a recording: the blocks left out, and the multiplicities that make up for them.
#[derive(Debug, Default)]
pub struct Deduplication {
    pub(super) stacks: Vec<Stack>,
    /// True if every block is run.
    whole: bool,
    /// Gradients of an earlier micro-batch that this one adds to: for each the index of the event before which it is added,
    /// and a storage of its size. `None` for the first micro-batch of a step, which finds no gradients.
    accumulated: Option<Vec<(usize, StorageId)>>,
    /// Number of storages before the pass: leaves made in it have no gradient from before.
    before: usize,
}

/// A part of the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Range of the part.
    pub range: Range<usize>,
    /// Number of consecutive repetitions.
    pub times: u64,
    /// True if it is forward or backward of a block of a stack, which may be repeated elsewhere too.
    pub is_block: bool,
}

impl Deduplication {
    /// Makes an empty recording of one micro-batch; `whole` runs every block, `accumulates` adds to gradients from before.
    pub fn new(whole: bool, accumulates: bool) -> Self {
        Self {
            stacks: Vec::new(),
            whole,
            accumulated: accumulates.then(Vec::new),
            before: 0,
        }
    }

    /// Splits the recording of a pass from `from` to `to` into parts, in order; `at` selects the coordinate of a
    /// position.
    pub fn pieces(&self, from: usize, to: usize, at: impl Fn(&Position) -> usize) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut now = from;
        let mut add = |range: Range<usize>, is_block| match pieces.last_mut() {
            Some(last) if is_block && last.is_block && last.range == range => last.times += 1,
            _ if range.is_empty() => {}
            _ => pieces.push(Piece {
                range,
                times: 1,
                is_block,
            }),
        };
        for stack in &self.stacks {
            let place = |i: usize| at(&stack.forward[i]);
            add(now..place(0), false);
            let blocks = stack.representatives.iter();
            blocks.for_each(|&block| add(place(block)..place(block + 1), true));
            now = place(stack.forward.len() - 1);
        }
        for stack in self.stacks.iter().rev().filter(|stack| !stack.backward.is_empty()) {
            let ends = stack.backward.len() - 1;
            let place = |i: usize| at(&stack.backward[ends - i]);
            add(now..place(ends), false);
            let blocks = stack.representatives.iter().rev();
            blocks.for_each(|&block| add(place(block + 1)..place(block), true));
            now = place(0);
        }
        add(now..to, false);
        pieces
    }

    /// Storages of the size of gradients from before, each with the index of the event before which it was added to.
    pub fn accumulated(&self) -> &[(usize, StorageId)] {
        self.accumulated.as_deref().unwrap_or_default()
    }

    /// Notes the position of backward once it has left a block: it reaches node `node`, or its end.
    fn backward_reaches(&mut self, node: Option<u64>, place: impl Fn() -> Position) {
        for stack in self.stacks.iter_mut().rev() {
            let ends = stack.nodes.len();
            while stack.backward.len() < ends
                && node.is_none_or(|node| node < stack.nodes[ends - 1 - stack.backward.len()])
            {
                stack.backward.push(place());
            }
            if stack.backward.len() < ends {
                return;
            }
        }
    }
}

/// Chooses the blocks that run, and for each block the one that runs in its place: one with equal kinds of its own,
/// before it and after it, in the whole stack and among those that run.
fn representatives(kinds: &[u64]) -> (Vec<usize>, Vec<usize>) {
    let beside = |i: usize| (i.checked_sub(1).map(|i| kinds[i]), kinds[i], kinds.get(i + 1).copied());
    let same = |i: usize, among: &[usize]| among.iter().position(|&run| beside(run) == beside(i));
    // A block's own kind does not suffice: its output lives until the next block lets go of it, and its gradient is what
    // that block's backward makes. Where kinds alternate, such as sliding and full attention, a block may free at other
    // places before one kind than before the other.
    let mut runs: Vec<usize> = Vec::new();
    for i in 0..kinds.len() {
        if same(i, &runs).is_none() {
            runs.push(i);
        }
    }
    // Blocks between two that run may be left out only if each of the two has the same neighbour kind as in the stack.
    let apart = |two: &[usize]| kinds[two[1]] != kinds[two[0] + 1] || kinds[two[0]] != kinds[two[1] - 1];
    while let Some(at) = runs.windows(2).position(|two| two[1] - two[0] > 1 && apart(two)) {
        runs.insert(at + 1, runs[at + 1] - 1);
    }
    let stand = |i: usize| runs.binary_search(&i).ok().or_else(|| same(i, &runs)).unwrap_or(0);
    let representatives = (0..kinds.len()).map(stand).collect();
    (runs, representatives)
}

/// Makes the first blocks of a frozen input kinds of their own, up to the first block of the last kind: adapters may be in blocks
/// of some kinds alone, and the graph begins in the first that has one, so that a block before it is not like one behind.
pub fn where_graph_begins(mut kinds: Vec<u64>, input: &Tensor) -> Vec<u64> {
    if !input.requires_grad() {
        let is_first = |i: usize| !kinds[..i].contains(&kinds[i]);
        let last = (0..kinds.len()).rev().find(|&i| is_first(i)).unwrap_or(0);
        let own = kinds.iter().max().map_or(0, |most| most + 1);
        if last > 0 {
            (0..=last).for_each(|i| kinds[i] = own + i as u64);
        }
    }
    kinds
}

impl Tape {
    /// Deduplicates layers from here on, as `deduplication` configures.
    pub fn start_deduplication(&self, deduplication: Deduplication) {
        let before = self.allocations();
        *self.0.deduplication.borrow_mut() = Some(Deduplication {
            before,
            ..deduplication
        });
    }

    /// Ends layer deduplication and returns its state.
    pub fn take_deduplication(&self) -> Deduplication {
        self.0.deduplication.take().unwrap_or_default()
    }

    /// Current position in the recording.
    pub fn position(&self) -> Position {
        let log = self.0.log.borrow();
        Position {
            event: log.events.len(),
            item: self.work_mark(),
            storage: log.allocations.len(),
            scope: log.scopes.len(),
        }
    }

    /// Runs the blocks of a stack, one after the other, by index. Blocks of one of `kinds` are alike, and one of them may
    /// run for others.
    pub fn stack(&self, kinds: &[u64], run: &mut dyn FnMut(usize)) {
        let whole = self
            .0
            .deduplication
            .borrow()
            .as_ref()
            .is_none_or(|deduplication| deduplication.whole);
        if whole {
            return (0..kinds.len()).for_each(run);
        }
        let (runs, representatives) = representatives(kinds);
        let mut stack = Stack {
            representatives,
            ..Stack::default()
        };
        let note = |stack: &mut Stack| {
            stack.forward.push(self.position());
            stack.nodes.push(self.0.sequence.get());
        };
        for block in runs {
            note(&mut stack);
            run(block);
        }
        note(&mut stack);
        if let Some(deduplication) = &mut *self.0.deduplication.borrow_mut() {
            deduplication.stacks.push(stack);
        }
    }

    /// Notes that backward reaches node `node`, or its end.
    pub(super) fn backward_reaches(&self, node: Option<u64>) {
        if let Some(deduplication) = &mut *self.0.deduplication.borrow_mut() {
            deduplication.backward_reaches(node, || self.position());
        }
    }

    /// Returns true if there is a gradient from a micro-batch before to which this one is added; its memory is like
    /// that of `like`.
    pub(super) fn accumulates_gradient(&self, leaf: &Tensor, like: &Tensor) -> bool {
        let place = self.mark();
        let mut deduplication = self.0.deduplication.borrow_mut();
        let Some(deduplication) = deduplication.as_mut() else {
            return false;
        };
        let is_of_before = leaf
            .storage()
            .id()
            .is_some_and(|id| (id as usize) < deduplication.before);
        let accumulated = deduplication.accumulated.as_mut();
        let (Some(accumulated), true, Some(id)) = (accumulated, is_of_before, like.storage().id()) else {
            return false;
        };
        accumulated.push((place, id));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_stands_for_those_with_the_same_neighbours() {
        assert_eq!(representatives(&[1; 5]), (vec![0, 1, 4], vec![0, 1, 1, 1, 2]));
        let (runs, representatives) = representatives(&[0, 0, 0, 0, 7, 0, 0, 0, 0, 7, 0, 0, 0, 0, 7]);
        assert_eq!(runs, [0, 1, 3, 4, 5, 13, 14]);
        assert_eq!(representatives, [0, 1, 1, 2, 3, 4, 1, 1, 2, 3, 4, 1, 1, 5, 6]);
    }
}
