//! From events to allocations: when each began, when it ended, and what it was for.

use std::collections::HashMap;

use super::category::{Category, Part, part};
use super::stacks::{StackId, Stacks};
use super::{Segment, Snapshot};
use vramscope_engine::allocator::{Action, Event, Options, round_size};
use vramscope_engine::units::Bytes;

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

/// No allocation.
const NONE: u32 = u32::MAX;

/// All allocations of one device.
#[derive(Debug, Clone, Default)]
pub struct Allocations {
    /// In the order in which they are first met.
    pub list: Vec<Allocation>,
    /// By event.
    of_event: Vec<u32>,
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
        let count = events.len().min(u32::MAX as usize - 1) as u32;
        let mut out = Self {
            list: Vec::with_capacity(events.len() / 3),
            of_event: vec![NONE; count as usize],
            events: count,
            is_from_start: true,
            steps: Vec::new(),
        };
        // By address: the allocation, and whether its owner let go of it while another stream still uses it.
        let mut open: HashMap<u64, (u32, bool)> = HashMap::new();
        for (at, event) in (0..count).zip(events) {
            let index = match event.action {
                Action::Alloc => {
                    let stack = stacks.get(at as usize).copied().unwrap_or_default();
                    let index = out.push(at, event.size, stack, Category::Other);
                    open.insert(event.address, (index, false));
                    index
                }
                Action::FreeRequested => {
                    let index = match open.get(&event.address) {
                        Some(&(index, false)) => index,
                        _ => out.push(0, event.size, StackId::EMPTY, Category::Before),
                    };
                    out.list[index as usize].end = at;
                    open.insert(event.address, (index, true));
                    index
                }
                Action::FreeCompleted => match open.remove(&event.address) {
                    Some((index, was_requested)) => {
                        if !was_requested {
                            out.list[index as usize].end = at;
                        }
                        index
                    }
                    None => {
                        let index = out.push(0, event.size, StackId::EMPTY, Category::Before);
                        out.list[index as usize].end = at;
                        index
                    }
                },
                _ => continue,
            };
            out.of_event[at as usize] = index;
        }
        // What tensors hold at the end and nothing in the recording made.
        for block in segments.flat_map(|segment| &segment.blocks) {
            if block.is_live && !open.contains_key(&block.address) {
                out.push(0, block.size.get(), block.stack, Category::Before);
            }
        }
        out
    }

    /// An allocation that nothing frees, as far as is known.
    fn push(&mut self, begin: u32, bytes: u64, stack: StackId, category: Category) -> u32 {
        self.is_from_start &= category != Category::Before;
        self.list.push(Allocation {
            begin,
            end: self.events,
            bytes: round_size(bytes, &Options::default()),
            stack,
            category,
        });
        (self.list.len() - 1) as u32
    }

    /// The allocation that an event made or freed.
    pub fn of_event(&self, event: u32) -> Option<u32> {
        self.of_event
            .get(event as usize)
            .copied()
            .filter(|&index| index != NONE)
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

    /// Visits the sum of live bytes before the recording, as of event 0, and after each event that changes it,
    /// in order.
    pub fn walk(&self, mut visit: impl FnMut(u32, u64)) {
        self.walk_categories(|at, totals| visit(at, totals.iter().sum()));
    }

    /// As [`Self::walk`], by category in the order of [`Category::ALL`].
    pub fn walk_categories(&self, mut visit: impl FnMut(u32, &[u64; Category::ALL.len()])) {
        let mut totals = [0u64; Category::ALL.len()];
        for older in self.list.iter().filter(|a| a.category == Category::Before) {
            totals[Category::Before.place()] += older.bytes;
        }
        visit(0, &totals);
        for at in 0..self.events {
            let Some(allocation) = self.of_event(at).and_then(|index| self.list.get(index as usize)) else {
                continue;
            };
            let total = &mut totals[allocation.category.place()];
            if allocation.category != Category::Before && allocation.begin == at {
                *total += allocation.bytes;
            } else if allocation.end == at {
                *total -= allocation.bytes;
            } else {
                continue;
            }
            visit(at, &totals);
        }
    }

    /// The stacked curve by category, reduced to at most `points` columns; a column holds the highest total
    /// within its span, from just before its first event on, so that no peak is lost.
    pub fn columns(&self, points: u32) -> Vec<[Bytes; Category::ALL.len()]> {
        let span = self.events.div_ceil(points.max(1)).max(1);
        let mut columns = vec![[0u64; Category::ALL.len()]; self.events.div_ceil(span) as usize];
        let (mut last, mut filled) = ([0u64; Category::ALL.len()], 0);
        self.walk_categories(|at, totals| {
            let column = (at / span) as usize;
            // What no event changed goes on.
            while filled <= column && filled < columns.len() {
                columns[filled] = last;
                filled += 1;
            }
            if let Some(known) = columns.get_mut(column).filter(|known| total(known) <= total(totals)) {
                *known = *totals;
            }
            last = *totals;
        });
        columns.iter_mut().skip(filled).for_each(|column| *column = last);
        columns.into_iter().map(|column| column.map(Bytes::new)).collect()
    }

    /// What lives right after an event.
    pub fn live_at(&self, event: u32) -> impl Iterator<Item = &Allocation> {
        self.list.iter().filter(move |a| {
            let has_begun = a.category == Category::Before || a.begin <= event;
            has_begun && a.end > event
        })
    }
}

fn total(totals: &[u64; Category::ALL.len()]) -> u64 {
    totals.iter().sum()
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
