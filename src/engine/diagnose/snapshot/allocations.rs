//! From events to allocations: when each began, when it ended, and what it was for.

use std::collections::HashMap;

use super::category::{Category, Part, part};
use super::stacks::{StackId, Stacks};
use super::{Segment, Snapshot};
use crate::allocator::{Action, Event, Options, round_size};

/// One allocation of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// Number of the event that made it; 0 for what is older than the recording.
    pub begin: u32,
    /// Number of the event that freed it; the number of events where nothing did.
    pub end: u32,
    /// Bytes, rounded up to whole blocks as PyTorch rounds them.
    pub bytes: u64,
    /// Where it was made.
    pub stack: StackId,
    /// What it is for.
    pub category: Category,
}

/// All allocations of one device.
#[derive(Debug, Clone, Default)]
pub struct Allocations {
    /// In the order of their beginning.
    pub list: Vec<Allocation>,
    /// Number of events.
    pub events: u32,
    /// Whether the recording began with an empty allocator.
    pub is_from_start: bool,
    /// Numbers of events after which an optimizer step was over: ends of steps.
    pub steps: Vec<u32>,
}

impl Allocations {
    /// The allocations of a device of a snapshot.
    pub fn of(snapshot: &Snapshot, device: usize) -> Self {
        let (Some(trace), Some(stacks)) = (snapshot.devices.get(device), snapshot.stacks_of.get(device)) else {
            return Self::default();
        };
        let parts: Vec<Part> = snapshot
            .stacks
            .ids()
            .map(|id| part(snapshot.stacks.frames(id)))
            .collect();
        let part_of = |at: usize| stacks.get(at).map_or(Part::Other, |&id| parts[Stacks::index(id)]);
        let segments = snapshot
            .segments
            .iter()
            .filter(|segment| segment.device as usize == device);
        let mut out = Self::collect(&trace.events, stacks, segments);
        if snapshot.stacks.is_empty() {
            // Without stacks nothing tells the parts of a step apart.
            return out;
        }
        let runs = Runs::of(&trace.events, part_of);
        out.steps = runs.optimizer_ends();
        let events = out.events;
        for allocation in out.list.iter_mut().filter(|a| a.category != Category::Before) {
            let part = part_of(allocation.begin as usize);
            allocation.category = runs.category(allocation, part, events);
        }
        out
    }

    fn collect<'a>(events: &[Event], stacks: &[StackId], segments: impl Iterator<Item = &'a Segment>) -> Self {
        let options = Options::default();
        let count = events.len().min(u32::MAX as usize - 1) as u32;
        let mut list: Vec<Allocation> = Vec::with_capacity(events.len() / 3);
        let mut older = Vec::new();
        let mut open: HashMap<u64, u32> = HashMap::new();
        let before = |bytes: u64, end: u32, stack: StackId| Allocation {
            begin: 0,
            end,
            bytes,
            stack,
            category: Category::Before,
        };
        // A block that is awaited by another stream is freed twice: requested, and completed.
        let mut requested: HashMap<u64, ()> = HashMap::new();
        for (at, event) in (0..count).zip(events) {
            match event.action {
                Action::Alloc => {
                    open.insert(event.address, list.len() as u32);
                    list.push(Allocation {
                        begin: at,
                        end: count,
                        bytes: round_size(event.size.min(1 << 50), &options),
                        stack: stacks.get(at as usize).copied().unwrap_or_default(),
                        category: Category::Other,
                    });
                }
                Action::FreeRequested | Action::FreeCompleted => {
                    let is_second = event.action == Action::FreeCompleted && requested.remove(&event.address).is_some();
                    if event.action == Action::FreeRequested {
                        requested.insert(event.address, ());
                    }
                    match open.remove(&event.address) {
                        Some(known) => list[known as usize].end = at,
                        None if is_second => {}
                        None => {
                            let bytes = round_size(event.size.min(1 << 50), &options);
                            older.push(before(bytes, at, StackId::EMPTY));
                        }
                    }
                }
                _ => {}
            }
        }
        // What tensors hold at the end and nothing in the recording made.
        for block in segments.flat_map(|segment| &segment.blocks) {
            if block.is_live && !open.contains_key(&block.address) {
                older.push(before(block.size.get().min(1 << 50), count, block.stack));
            }
        }
        let is_from_start = older.is_empty();
        older.append(&mut list);
        Self {
            list: older,
            events: count,
            is_from_start,
            steps: Vec::new(),
        }
    }

    /// The highest sum of live bytes, and after which event; the first of equals.
    pub fn peak(&self) -> (u32, u64) {
        let (mut peak, mut at_peak) = (0, 0);
        self.walk(|at, total| {
            if total > peak {
                (peak, at_peak) = (total, at);
            }
        });
        (at_peak, peak)
    }

    /// Visits the sum of live bytes after each event that changes it, in order.
    pub fn walk(&self, mut visit: impl FnMut(u32, u64)) {
        let mut changes = vec![0i64; self.events as usize + 1];
        let mut total = 0i64;
        for allocation in &self.list {
            let bytes = allocation.bytes as i64;
            match allocation.category {
                Category::Before => total = total.saturating_add(bytes),
                _ => changes[allocation.begin as usize] += bytes,
            }
            changes[allocation.end as usize] -= bytes;
        }
        visit(0, total.max(0) as u64);
        for (at, change) in changes.iter().enumerate().take(self.events as usize) {
            if *change != 0 {
                total = total.saturating_add(*change);
                visit(at as u32, total.max(0) as u64);
            }
        }
    }

    /// What lives right after an event.
    pub fn live_at(&self, event: u32) -> impl Iterator<Item = &Allocation> {
        self.list.iter().filter(move |a| {
            let has_begun = a.category == Category::Before || a.begin <= event;
            has_begun && a.end > event
        })
    }
}

/// Consecutive allocations of one part of a step.
struct Runs {
    /// Part, first and last event.
    runs: Vec<(Part, u32, u32)>,
}

impl Runs {
    fn of(events: &[Event], part_of: impl Fn(usize) -> Part) -> Self {
        let mut runs: Vec<(Part, u32, u32)> = Vec::new();
        for (at, event) in events.iter().enumerate() {
            if event.action != Action::Alloc {
                continue;
            }
            let (part, at32) = (part_of(at), at as u32);
            // The program's own allocations come in between.
            if part == Part::Other {
                continue;
            }
            match runs.last_mut() {
                Some((last, _, end)) if *last == part => *end = at32,
                _ => runs.push((part, at32, at32)),
            }
        }
        Self { runs }
    }

    fn optimizer_ends(&self) -> Vec<u32> {
        // Inside one update other code may allocate too: an end is followed by a forward.
        let pairs = self.runs.windows(2);
        let mut ends: Vec<u32> = pairs
            .filter(|pair| pair[0].0 == Part::Optimizer && pair[1].0 != Part::Optimizer)
            .map(|pair| pair[1].1)
            .collect();
        ends.extend(
            self.runs
                .last()
                .filter(|run| run.0 == Part::Optimizer)
                .map(|run| run.2 + 1),
        );
        ends
    }

    /// The run that an event lies in.
    fn at(&self, event: u32) -> usize {
        self.runs.partition_point(|run| run.1 <= event).saturating_sub(1)
    }

    /// What a run's allocation is for: what outlives its run was made to be kept.
    fn category(&self, allocation: &Allocation, part: Part, events: u32) -> Category {
        let run = self.at(allocation.begin);
        let run_end = self.runs.get(run).map_or(0, |run| run.2);
        let outlives_its_run = allocation.end > run_end;
        let is_kept = allocation.end == events || self.at(allocation.end) > run + 1;
        match part {
            Part::Load if outlives_its_run => Category::Weight,
            // A recording that ends within the update cannot tell states from temporaries: what is kept counts.
            Part::Optimizer if outlives_its_run && is_kept => Category::OptimizerState,
            Part::Backward if outlives_its_run => Category::Gradient,
            Part::Forward if outlives_its_run => Category::Activation,
            Part::Other => Category::Other,
            Part::Load | Part::Optimizer | Part::Backward | Part::Forward => Category::Temporary,
        }
    }
}
