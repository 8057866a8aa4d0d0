//! Derives allocations from events: begin, end and category of each.

use std::collections::HashMap;

use super::category::{Category, Part, part};
use super::stacks::{StackId, Stacks};
use super::{Segment, Snapshot};
use vramscope_engine::allocator::{Action, Event, Options, round_size};
use vramscope_engine::units::Bytes;

/// One allocation of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// Index of the allocating event; 0 if it is older than the recording.
    pub begin: u32,
    /// Index of the freeing event; the number of events if it was never freed.
    pub end: u32,
    /// Bytes, rounded up to the allocator's block size as PyTorch does.
    pub bytes: u64,
    /// Stack that made the allocation.
    pub stack: StackId,
    /// Category of the allocation.
    pub category: Category,
}

/// Marks an event without an allocation.
const NONE: u32 = u32::MAX;

/// All allocations of one device.
#[derive(Debug, Clone, Default)]
pub struct Allocations {
    /// Allocations in the order of their first event.
    pub list: Vec<Allocation>,
    /// Index of the allocation that each event makes or frees.
    of_event: Vec<u32>,
    /// Number of events.
    pub events: u32,
    /// True if the recording began with an empty allocator.
    pub is_from_start: bool,
    /// Indices of the events at which an optimizer step ended.
    pub steps: Vec<u32>,
}

impl Allocations {
    /// Collects the allocations of one device of a snapshot.
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
            // Without stacks the parts of a step cannot be told apart.
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
        // Open allocations by address, and true for those already freed while another stream still uses them.
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
        // Blocks that are live at the end but were not allocated in the recording are older than it.
        for block in segments.flat_map(|segment| &segment.blocks) {
            if block.is_live && !open.contains_key(&block.address) {
                out.push(0, block.size.get(), block.stack, Category::Before);
            }
        }
        out
    }

    /// Adds an allocation without a free.
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

    /// The allocation that an event makes or frees.
    pub fn of_event(&self, event: u32) -> Option<u32> {
        self.of_event
            .get(event as usize)
            .copied()
            .filter(|&index| index != NONE)
    }

    /// The highest sum of live bytes and its event, the first of equal ones.
    pub fn peak(&self) -> (u32, u64) {
        let (mut peak, mut at_peak) = (0, 0);
        self.walk(|at, total| {
            if total > peak {
                (peak, at_peak) = (total, at);
            }
        });
        (at_peak, peak)
    }

    /// Visits the sum of live bytes in order: before the recording, as event 0, then after each event that changes it.
    pub fn walk(&self, mut visit: impl FnMut(u32, u64)) {
        self.walk_categories(|at, totals| visit(at, totals.iter().sum()));
    }

    /// Visits the sums of live bytes as [`Self::walk`] does, by category in the order of [`Category::ALL`].
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

    /// The stacked curve by category, reduced to at most `points` columns. Each column holds the highest total within
    /// its span, starting just before its first event, so that no peak is lost.
    pub fn columns(&self, points: u32) -> Vec<[Bytes; Category::ALL.len()]> {
        let span = self.events.div_ceil(points.max(1)).max(1);
        let mut columns = vec![[0u64; Category::ALL.len()]; self.events.div_ceil(span) as usize];
        let (mut last, mut filled) = ([0u64; Category::ALL.len()], 0);
        self.walk_categories(|at, totals| {
            let column = (at / span) as usize;
            // Columns without an event continue the last value.
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

    /// Allocations that are live right after an event.
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

/// Runs of consecutive events that belong to one part of a step.
struct Runs {
    /// Part, first event and last event of each run.
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
            // The program's own allocations interrupt no run.
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
        // An update ends where a run of another part begins; allocations of other code within it start no run.
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

    /// Index of the run that contains an event.
    fn at(&self, event: u32) -> usize {
        self.runs.partition_point(|run| run.1 <= event).saturating_sub(1)
    }

    /// Category of an allocation, from the part of the step that made it and from its lifetime: what outlives its run
    /// was made to be kept.
    fn category(&self, allocation: &Allocation, part: Part, events: u32) -> Category {
        let run = self.at(allocation.begin);
        let run_end = self.runs.get(run).map_or(0, |run| run.2);
        let outlives_its_run = allocation.end > run_end;
        let is_kept = allocation.end == events || self.at(allocation.end) > run + 1;
        match part {
            Part::Load if outlives_its_run => Category::Weight,
            // A recording that ends within the update cannot distinguish states from temporaries: both count as states.
            Part::Optimizer if outlives_its_run && is_kept => Category::OptimizerState,
            Part::Backward if outlives_its_run => Category::Gradient,
            Part::Forward if outlives_its_run => Category::Activation,
            Part::Other => Category::Other,
            Part::Load | Part::Optimizer | Part::Backward | Part::Forward => Category::Temporary,
        }
    }
}
