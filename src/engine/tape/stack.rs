//! Stacks of blocks that do alike: where someone only counts, one of them runs for all.
//!
//! What a block writes down follows from its kind and from those beside it: what it makes lives until the next block
//! has run, and backward comes from there. So of blocks with the same kinds before and after them one is run, and
//! [`Light::pieces`] says which part of the record is to be counted how often. `simulate/pass.rs` holds the sums
//! against what has to be left at the end.

use std::ops::Range;

use super::core::Tape;
use super::log::StorageId;
use super::tensor::Tensor;

/// A place in the record: among births and deaths, and among what GPU and host do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// Events so far.
    pub event: usize,
    /// Items so far.
    pub item: usize,
}

/// One stack, of which some blocks ran.
#[derive(Debug, Default)]
struct Stack {
    /// For each block, which of those that ran stands for it.
    stands: Vec<usize>,
    /// Where each block that ran begins in forward, then where the last one ends.
    forward: Vec<Place>,
    /// The same in backward, which comes to the end first: where it has passed each of these.
    backward: Vec<Place>,
    /// The graph's nodes so far at each of them.
    nodes: Vec<u64>,
}

/// What is left out of a record, and how to make up for it.
#[derive(Debug, Default)]
pub struct Light {
    stacks: Vec<Stack>,
    /// Whether every block is run.
    whole: bool,
    /// Gradients of a micro-batch before, which new ones are added to, each with the place of that and a storage of
    /// its size; nothing where there was none.
    held: Option<Vec<(usize, StorageId)>>,
    /// Storages before the pass: leaves that are made in it have no gradient from one before.
    before: usize,
}

/// A part of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where it lies.
    pub range: Range<usize>,
    /// How often it comes here.
    pub times: u64,
    /// Whether it is forward or backward of a block of a stack, which may come elsewhere too.
    pub is_block: bool,
}

impl Light {
    /// A record of one micro-batch; `whole` runs every block, `held` finds gradients that are there.
    pub fn new(whole: bool, held: bool) -> Self {
        Self {
            stacks: Vec::new(),
            whole,
            held: held.then(Vec::new),
            before: 0,
        }
    }

    /// The record of a pass from `from` to `to`, in order, as `at` sees places.
    pub fn pieces(&self, from: usize, to: usize, at: impl Fn(&Place) -> usize) -> Vec<Piece> {
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
            let blocks = stack.stands.iter();
            blocks.for_each(|&block| add(place(block)..place(block + 1), true));
            now = place(stack.forward.len() - 1);
        }
        for stack in self.stacks.iter().rev().filter(|stack| !stack.backward.is_empty()) {
            let ends = stack.backward.len() - 1;
            let place = |i: usize| at(&stack.backward[ends - i]);
            add(now..place(ends), false);
            let blocks = stack.stands.iter().rev();
            blocks.for_each(|&block| add(place(block + 1)..place(block), true));
            now = place(0);
        }
        add(now..to, false);
        pieces
    }

    /// Storages of the size of gradients that were there already, each with the event before which it was added to.
    pub fn held(&self) -> &[(usize, StorageId)] {
        self.held.as_deref().unwrap_or_default()
    }

    /// Notes where backward is, if it has left a block: it comes to the node of this number, or to its end.
    fn comes_to(&mut self, node: Option<u64>, place: impl Fn() -> Place) {
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

/// The blocks that run, and for each block which of them stands for it: one with the same kind before, of it, and after,
/// among those that run as among all.
fn stands(kinds: &[u64]) -> (Vec<usize>, Vec<usize>) {
    let beside = |i: usize| (i.checked_sub(1).map(|i| kinds[i]), kinds[i], kinds.get(i + 1).copied());
    let same = |i: usize, among: &[usize]| among.iter().position(|&run| beside(run) == beside(i));
    let mut runs: Vec<usize> = Vec::new();
    for i in 0..kinds.len() {
        if same(i, &runs).is_none() {
            runs.push(i);
        }
    }
    // What lies between two that run is left out only where each finds beside it what it finds in the stack.
    let apart = |two: &[usize]| kinds[two[1]] != kinds[two[0] + 1] || kinds[two[0]] != kinds[two[1] - 1];
    while let Some(at) = runs.windows(2).position(|two| two[1] - two[0] > 1 && apart(two)) {
        runs.insert(at + 1, runs[at + 1] - 1);
    }
    let stand = |i: usize| runs.binary_search(&i).ok().or_else(|| same(i, &runs)).unwrap_or(0);
    let stands = (0..kinds.len()).map(stand).collect();
    (runs, stands)
}

impl Tape {
    /// Leaves out what [`Light`] says from here on.
    pub fn lighten(&self, light: Light) {
        let before = self.births();
        *self.0.light.borrow_mut() = Some(Light { before, ..light });
    }

    /// Takes what was left out.
    pub fn take_light(&self) -> Light {
        self.0.light.take().unwrap_or_default()
    }

    /// Where the record is.
    pub fn place(&self) -> Place {
        Place {
            event: self.mark(),
            item: self.work_mark(),
        }
    }

    /// Runs the blocks of a stack, one after the other, by their numbers. Blocks of one of `kinds` do alike, whatever
    /// their numbers; where someone only counts, one of them may run for others.
    pub fn stack(&self, kinds: &[u64], run: &mut dyn FnMut(usize)) {
        let whole = self.0.light.borrow().as_ref().is_none_or(|light| light.whole);
        if whole {
            return (0..kinds.len()).for_each(run);
        }
        let (runs, stands) = stands(kinds);
        let mut stack = Stack {
            stands,
            ..Stack::default()
        };
        let note = |stack: &mut Stack| {
            stack.forward.push(self.place());
            stack.nodes.push(self.0.sequence.get());
        };
        for block in runs {
            note(&mut stack);
            run(block);
        }
        note(&mut stack);
        if let Some(light) = &mut *self.0.light.borrow_mut() {
            light.stacks.push(stack);
        }
    }

    /// Backward comes to the node of this number, or to its end.
    pub(super) fn comes_to(&self, node: Option<u64>) {
        if let Some(light) = &mut *self.0.light.borrow_mut() {
            light.comes_to(node, || self.place());
        }
    }

    /// Whether a gradient of a micro-batch before is there, which this one is added to; its memory is as that of `like`.
    pub(super) fn holds_gradient(&self, leaf: &Tensor, like: &Tensor) -> bool {
        let place = self.mark();
        let mut light = self.0.light.borrow_mut();
        let Some(light) = light.as_mut() else { return false };
        let is_of_before = leaf.storage().id().is_some_and(|id| (id as usize) < light.before);
        let (Some(held), true, Some(id)) = (light.held.as_mut(), is_of_before, like.storage().id()) else {
            return false;
        };
        held.push((place, id));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_stands_for_those_with_the_same_neighbours() {
        assert_eq!(stands(&[1; 5]), (vec![0, 1, 4], vec![0, 1, 1, 1, 2]));
        let (runs, stands) = stands(&[0, 0, 0, 0, 7, 0, 0, 0, 0, 7, 0, 0, 0, 0, 7]);
        assert_eq!(runs, [0, 1, 3, 4, 5, 13, 14]);
        assert_eq!(stands, [0, 1, 1, 2, 3, 4, 1, 1, 2, 3, 4, 1, 1, 5, 6]);
    }
}
