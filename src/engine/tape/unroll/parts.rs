//! Parts of a pass that ran with deduplicated layers, and their order in the whole pass.

use super::super::stack::{Position, Stack};

/// Forward or backward of a layer that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// Index of its stack.
    pub stack: usize,
    /// True for backward.
    pub backward: bool,
    /// Index among the layers of the stack that ran.
    pub run: usize,
}

/// A part of the recording: forward or backward of a layer, or what lies between two of them.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub from: Position,
    pub to: Position,
    /// The layer; `None` for what lies between.
    pub layer: Option<Layer>,
}

/// Size of a pass.
#[derive(Debug, Clone, Copy, Default)]
pub struct Size {
    pub events: usize,
    pub storages: usize,
}

/// Layers of a stack.
#[derive(Debug)]
pub struct Layers {
    /// For each layer, the one that ran in its place, by its index among those that ran.
    pub representatives: Vec<usize>,
    /// For each layer that ran, its index in the stack.
    pub runs: Vec<usize>,
    /// For each layer that ran, the last that it stands for.
    pub last: Vec<usize>,
    /// Index of the part of the first layer's forward; that of the last layer's backward, if backward ran.
    first_part: [Option<usize>; 2],
}

impl Layers {
    /// Returns true if a layer that ran stands for itself alone.
    pub fn is_single(&self, run: usize) -> bool {
        self.representatives.iter().filter(|&&stand| stand == run).count() == 1
    }

    /// Index of the part that is forward or backward of a layer that ran.
    pub fn part(&self, backward: bool, run: usize) -> Option<usize> {
        let first = self.first_part[usize::from(backward)]?;
        Some(first + if backward { self.runs.len() - 1 - run } else { run })
    }
}

/// All parts of a pass, in the order in which they ran, and the layers of its stacks.
#[derive(Debug)]
pub struct Parts {
    pub parts: Vec<Part>,
    pub stacks: Vec<Layers>,
}

impl Parts {
    /// Divides a pass from `begin` to `end`. `None` unless each stack ran once forward, and at most once backward.
    pub fn of(stacks: &[Stack], begin: Position, end: Position) -> Option<Self> {
        let mut parts = Vec::new();
        let mut layers: Vec<Layers> = stacks.iter().map(|stack| layers(&stack.representatives)).collect();
        let mut now = begin;
        let mut add = |to: Position, layer: Option<Layer>| {
            let part = Part { from: now, to, layer };
            now = to;
            parts.push(part);
            parts.len()
        };
        for (index, stack) in stacks.iter().enumerate() {
            let first = add(stack.forward[0], None);
            layers[index].first_part[0] = Some(first);
            for (run, &to) in stack.forward[1..].iter().enumerate() {
                let layer = Layer {
                    stack: index,
                    backward: false,
                    run,
                };
                add(to, Some(layer));
            }
        }
        for (index, stack) in stacks
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, stack)| !stack.backward.is_empty())
        {
            let first = add(stack.backward[0], None);
            layers[index].first_part[1] = Some(first);
            let runs = layers[index].runs.len();
            for (passed, &to) in stack.backward[1..].iter().enumerate() {
                let layer = Layer {
                    stack: index,
                    backward: true,
                    run: runs - 1 - passed,
                };
                add(to, Some(layer));
            }
        }
        add(end, None);
        // A stack that ran twice, or whose backward ran within another's, has positions that go back: its parts would
        // overlap.
        let is_ordered = parts.iter().all(|Part { from, to, .. }| from.event <= to.event);
        is_ordered.then_some(Self { parts, stacks: layers })
    }

    /// Numbers of events, storages and modules of the whole pass.
    pub fn whole_size(&self) -> Size {
        let mut size = Size::default();
        for part in &self.parts {
            let stand = |layer: Layer| {
                self.stacks[layer.stack]
                    .representatives
                    .iter()
                    .filter(|&&run| run == layer.run)
                    .count()
            };
            let times = part.layer.map_or(1, stand);
            size.events += times * (part.to.event - part.from.event);
            size.storages += times * (part.to.storage - part.from.storage);
        }
        size
    }

    /// The parts of the whole pass in order, each with the index of its layer in the stack.
    pub fn whole(&self) -> Vec<(usize, usize)> {
        let mut order = Vec::new();
        let mut at = 0;
        while at < self.parts.len() {
            let Some(Layer { stack, backward, .. }) = self.parts[at].layer else {
                order.push((at, 0));
                at += 1;
                continue;
            };
            let layers = &self.stacks[stack];
            let count = layers.representatives.len();
            for passed in 0..count {
                let layer = if backward { count - 1 - passed } else { passed };
                let part = layers.part(backward, layers.representatives[layer]);
                order.extend(part.map(|part| (part, layer)));
            }
            at += layers.runs.len();
        }
        order
    }
}

fn layers(representatives: &[usize]) -> Layers {
    let count = representatives.iter().max().map_or(0, |last| last + 1);
    let of = |run: usize| representatives.iter().position(|&stand| stand == run).unwrap_or(0);
    let last = |run: usize| representatives.iter().rposition(|&stand| stand == run).unwrap_or(0);
    Layers {
        runs: (0..count).map(of).collect(),
        last: (0..count).map(last).collect(),
        representatives: representatives.to_vec(),
        first_part: [None; 2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(event: usize) -> Position {
        Position {
            event,
            ..Position::default()
        }
    }

    #[test]
    fn parts_run_in_the_order_of_the_whole_pass() {
        let stack = Stack {
            representatives: vec![0, 1, 1, 2],
            forward: [2, 4, 6, 8].map(at).to_vec(),
            backward: [10, 12, 14, 16].map(at).to_vec(),
            nodes: vec![0; 4],
        };
        let parts = Parts::of(&[stack], at(0), at(20)).unwrap();
        let events: Vec<_> = parts
            .whole()
            .into_iter()
            .map(|(part, layer)| (parts.parts[part].from.event, layer))
            .collect();
        let forward = [(0, 0), (2, 0), (4, 1), (4, 2), (6, 3)];
        let backward = [(8, 0), (10, 3), (12, 2), (12, 1), (14, 0), (16, 0)];
        assert_eq!(events, [&forward[..], &backward].concat());
        assert!(Parts::of(&[], at(3), at(2)).is_none());
    }
}
