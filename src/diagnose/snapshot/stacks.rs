//! Deduplicates Python stacks.

use std::collections::HashMap;

use crate::pickle::Node;

/// Index of a stack; equal stacks have equal indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct StackId(u32);

impl StackId {
    /// The stack without frames: no Python code was running, as in autograd's own threads, or no stack was recorded.
    pub const EMPTY: Self = Self(0);
}

/// One frame of a Python stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Name of the function.
    pub name: String,
    /// Path of the file.
    pub file: String,
    /// Line number.
    pub line: u64,
}

/// The distinct stacks of a snapshot.
#[derive(Debug, Clone)]
pub struct Stacks {
    frames: Vec<Frame>,
    stacks: Vec<Box<[u32]>>,
}

impl Default for Stacks {
    fn default() -> Self {
        Self {
            frames: Vec::new(),
            stacks: vec![Box::default()],
        }
    }
}

impl Stacks {
    /// Frames of a stack, innermost first.
    pub fn frames(&self, stack: StackId) -> impl DoubleEndedIterator<Item = &Frame> + Clone {
        let frames = self.stacks.get(stack.0 as usize).map_or(&[][..], |stack| stack);
        frames.iter().filter_map(|&frame| self.frames.get(frame as usize))
    }

    /// Number of stacks, including the empty one.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Returns true if no stack was recorded.
    pub fn is_empty(&self) -> bool {
        self.stacks.len() <= 1
    }

    /// Indices of all stacks.
    pub fn ids(&self) -> impl Iterator<Item = StackId> + use<> {
        (0..self.stacks.len() as u32).map(StackId)
    }

    /// Converts a stack to an array index.
    pub const fn index(stack: StackId) -> usize {
        stack.0 as usize
    }
}

/// Stores each stack and frame once. Picklers write a list that occurs in many places once and refer to it, so each
/// list is examined once.
#[derive(Default)]
pub(super) struct Interner {
    stacks: Stacks,
    /// Stack index by the list's identity in the pickle.
    lists: ByIdentity,
    by_frames: HashMap<Box<[u32]>, StackId>,
    /// Frame index by the dictionary's identity in the pickle.
    dicts: ByIdentity,
    by_frame: HashMap<Frame, u32>,
}

/// Maps identities in the pickle to indices. Identities are small and dense, so no hashing is needed.
#[derive(Default)]
struct ByIdentity(Vec<u32>);

impl ByIdentity {
    const UNKNOWN: u32 = u32::MAX;

    fn get(&self, identity: u32) -> Option<u32> {
        let known = self.0.get(identity as usize).copied();
        known.filter(|&number| number != Self::UNKNOWN)
    }

    fn set(&mut self, identity: u32, number: u32) {
        let at = identity as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, Self::UNKNOWN);
        }
        self.0[at] = number;
    }
}

/// Largest number of frames of a stack (`sys.getrecursionlimit` is a thousand by default).
const DEEPEST: usize = 4096;

impl Interner {
    pub fn stack(&mut self, list: Option<Node>) -> StackId {
        let Some((list, id)) = list.and_then(|list| Some((list, list.identity()?))) else {
            return StackId::EMPTY;
        };
        // Every free has its own empty list.
        if list.items().is_none_or(|mut items| items.next().is_none()) {
            return StackId::EMPTY;
        }
        if let Some(known) = self.lists.get(id) {
            return StackId(known);
        }
        let items = list.items().into_iter().flatten().take(DEEPEST);
        let frames: Box<[u32]> = items.filter_map(|frame| self.frame(frame)).collect();
        let stack = self.intern(frames);
        self.lists.set(id, stack.0);
        stack
    }

    fn intern(&mut self, frames: Box<[u32]>) -> StackId {
        if frames.is_empty() {
            return StackId::EMPTY;
        }
        if let Some(&known) = self.by_frames.get(&frames) {
            return known;
        }
        let stack = StackId(self.stacks.stacks.len() as u32);
        self.stacks.stacks.push(frames.clone());
        self.by_frames.insert(frames, stack);
        stack
    }

    fn frame(&mut self, dict: Node) -> Option<u32> {
        let id = dict.identity()?;
        if let Some(known) = self.dicts.get(id) {
            return Some(known);
        }
        let text = |key: &str| -> String {
            let text = dict.get(key).and_then(Node::as_str).unwrap_or_default();
            // Paths are cut after 4096 characters.
            text.chars().take(4096).collect()
        };
        let frame = Frame {
            name: text("name"),
            file: text("filename"),
            line: dict.get("line").and_then(Node::as_u64).unwrap_or(0),
        };
        let number = match self.by_frame.get(&frame) {
            Some(&known) => known,
            None => {
                let number = self.stacks.frames.len() as u32;
                self.stacks.frames.push(frame.clone());
                self.by_frame.insert(frame, number);
                number
            }
        };
        self.dicts.set(id, number);
        Some(number)
    }

    pub fn finish(self) -> Stacks {
        self.stacks
    }
}
