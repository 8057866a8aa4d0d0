//! Prepares a recording for display: live memory over time at any zoom, by category and by stack frame.

use std::collections::HashMap;
use std::ops::Range;

use serde::Serialize;

use super::stacks::Stacks;
use super::summary::{Read, groups, place_of};
use super::{Allocations, Category, Group, Segment, Snapshot};
use vramscope_engine::units::Bytes;

/// Grouping of a stacked curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// By category, in the order of [`Category::ALL`].
    Category,
    /// By the frame that allocated, in the order of [`Recording::frames`].
    Frame,
}

/// Number of curves when grouped by frame; the last one is the sum of all remaining frames.
const FRAMES: usize = 8;

/// Number of events between two stored sums. Zoomed-in views start from one; zoomed-out views use whole blocks as
/// columns.
const BLOCK: u32 = 256;

/// Largest number of groups listed for an instant.
const LISTED: usize = 12;

/// One device's recording.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Number of the device.
    pub device: u32,
    allocations: Allocations,
    stacks: Stacks,
    segments: Vec<Segment>,
    frames: Vec<String>,
    by_category: Curve,
    by_frame: Curve,
}

/// Live bytes at an instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Instant {
    /// Index of the event; its effect is included.
    pub event: u32,
    /// Sum of live bytes.
    pub total: Bytes,
    /// Number of live allocations.
    pub count: u64,
    /// Live bytes by category, in the order of [`Category::ALL`].
    pub by_category: [Bytes; Category::ALL.len()],
    /// The largest groups of allocations made in one place.
    pub largest: Vec<Group>,
}

/// A segment to draw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SegmentMap {
    /// Size in bytes.
    pub size: Bytes,
    /// Bytes held by tensors.
    pub live: Bytes,
    /// Largest free range, in bytes.
    pub largest_hole: Bytes,
    /// True if the segment is expandable.
    pub is_expandable: bool,
    /// Start and length of each range held by tensors, adjacent ones merged, in thousandths of the segment.
    pub held: Vec<[u32; 2]>,
}

impl Recording {
    /// Creates a recording for each device of a snapshot that has events or segments.
    pub(crate) fn of(read: Read) -> Vec<Self> {
        let Snapshot { stacks, segments, .. } = read.snapshot;
        let recording = |(device, allocations): (u32, Allocations)| {
            let own = segments.iter().filter(|segment| segment.device == device);
            let (frames, classes) = frames(&allocations, &stacks);
            let category: Vec<u8> = allocations.list.iter().map(|a| a.category.place() as u8).collect();
            Self {
                device,
                by_category: Curve::of(&allocations, category, Category::ALL.len()),
                by_frame: Curve::of(&allocations, classes, frames.len()),
                segments: own.cloned().collect(),
                stacks: stacks.clone(),
                allocations,
                frames,
            }
        };
        read.allocations.into_iter().map(recording).collect()
    }

    /// Number of events.
    pub fn events(&self) -> u32 {
        self.allocations.events
    }

    /// Labels of the curves by frame, such as `modeling_gpt2.py:240 forward`, the largest first. The last one, an empty
    /// text, stands for all remaining frames.
    pub fn frames(&self) -> &[String] {
        &self.frames
    }

    /// Indices of the events at which optimizer steps ended.
    pub fn steps(&self) -> &[u32] {
        &self.allocations.steps
    }

    /// The curve over a range of events, in at most `most` columns. Each column holds the highest total of its span, so
    /// that no peak is lost at any zoom.
    pub fn columns(&self, by: By, span: Range<u32>, most: u32) -> Vec<Vec<u64>> {
        match by {
            By::Category => self.by_category.columns(&self.allocations, span, most),
            By::Frame => self.by_frame.columns(&self.allocations, span, most),
        }
    }

    /// Live memory right after an event.
    pub fn instant(&self, event: u32) -> Instant {
        let event = event.min(self.events().saturating_sub(1));
        let mut by_category = [Bytes::ZERO; Category::ALL.len()];
        let mut count = 0;
        for allocation in self.allocations.live_at(event) {
            by_category[allocation.category.place()] += Bytes::new(allocation.bytes);
            count += 1;
        }
        Instant {
            event,
            total: by_category.iter().copied().sum(),
            count,
            by_category,
            largest: groups(self.allocations.live_at(event), &self.stacks, LISTED),
        }
    }

    /// The largest segments, and the total number of segments.
    pub fn segments(&self, most: usize) -> (Vec<SegmentMap>, usize) {
        let mut order: Vec<&Segment> = self.segments.iter().collect();
        order.sort_by_key(|segment| (std::cmp::Reverse(segment.size), segment.address));
        order.truncate(most);
        (order.into_iter().map(SegmentMap::of).collect(), self.segments.len())
    }
}

impl SegmentMap {
    fn of(segment: &Segment) -> Self {
        let thousandths = |bytes: u64| (u128::from(bytes) * 1000 / u128::from(segment.size.get().max(1))) as u32;
        let mut held: Vec<[u32; 2]> = Vec::new();
        for block in segment.blocks.iter().filter(|block| block.is_live) {
            let begin = thousandths(block.address.saturating_sub(segment.address)).min(999);
            let end = thousandths(
                block
                    .address
                    .saturating_sub(segment.address)
                    .saturating_add(block.size.get()),
            )
            .clamp(begin + 1, 1000);
            match held.last_mut() {
                Some(last) if begin <= last[0] + last[1] => last[1] = last[1].max(end.saturating_sub(last[0])),
                _ => held.push([begin, end - begin]),
            }
        }
        Self {
            size: segment.size,
            live: segment.live(),
            largest_hole: segment.largest_hole(),
            is_expandable: segment.is_expandable,
            held,
        }
    }
}

/// The frames with the most bytes × lifetime, and the curve index of each allocation.
fn frames(allocations: &Allocations, stacks: &Stacks) -> (Vec<String>, Vec<u8>) {
    let place: Vec<String> = stacks.ids().map(|id| place_of(stacks.frames(id))).collect();
    // Large and long-lived allocations determine the height of the curve.
    let mut weight: HashMap<&str, u128> = HashMap::new();
    for allocation in &allocations.list {
        let lived = u128::from(allocation.end.saturating_sub(allocation.begin));
        *weight.entry(&place[Stacks::index(allocation.stack)]).or_default() += lived * u128::from(allocation.bytes);
    }
    let mut order: Vec<(&str, u128)> = weight.into_iter().filter(|(place, _)| !place.is_empty()).collect();
    order.sort_by_key(|&(place, weight)| (std::cmp::Reverse(weight), place));
    order.truncate(FRAMES);
    let class_of: Vec<u8> = place
        .iter()
        .map(|place| {
            order
                .iter()
                .position(|(known, _)| known == place)
                .unwrap_or(order.len()) as u8
        })
        .collect();
    let classes = allocations
        .list
        .iter()
        .map(|a| class_of[Stacks::index(a.stack)])
        .collect();
    let names = order
        .iter()
        .map(|(place, _)| (*place).to_string())
        .chain([String::new()]);
    (names.collect(), classes)
}

/// Sums by curve over time: before each block of events, and at the block's maximum.
#[derive(Debug, Clone)]
struct Curve {
    /// Curve index of each allocation.
    class: Vec<u8>,
    classes: usize,
    /// One row of sums for each block: before its first event.
    before: Vec<u64>,
    /// One row of sums for each block: where its total is highest.
    highest: Vec<u64>,
}

impl Curve {
    fn of(allocations: &Allocations, class: Vec<u8>, classes: usize) -> Self {
        let mut sums = vec![0; classes];
        for (allocation, &class) in allocations.list.iter().zip(&class) {
            if allocation.category == Category::Before {
                sums[class as usize] += allocation.bytes;
            }
        }
        let mut curve = Self {
            class,
            classes,
            before: Vec::new(),
            highest: Vec::new(),
        };
        for begin in (0..allocations.events).step_by(BLOCK as usize) {
            curve.before.extend_from_slice(&sums);
            let mut highest = Highest::of(&sums);
            for event in begin..allocations.events.min(begin + BLOCK) {
                curve.step(allocations, event, &mut sums);
                highest.meet(&sums);
            }
            curve.highest.extend(highest.sums);
        }
        curve
    }

    /// Applies an event to the sums.
    fn step(&self, allocations: &Allocations, event: u32, sums: &mut [u64]) {
        let Some(index) = allocations.of_event(event) else {
            return;
        };
        let Some(allocation) = allocations.list.get(index as usize) else {
            return;
        };
        let sum = &mut sums[self.class[index as usize] as usize];
        if allocation.category != Category::Before && allocation.begin == event {
            *sum += allocation.bytes;
        } else if allocation.end == event {
            *sum -= allocation.bytes;
        }
    }

    fn row<'a>(&self, of: &'a [u64], block: u32) -> &'a [u64] {
        let begin = block as usize * self.classes;
        &of[begin..begin + self.classes]
    }

    fn columns(&self, allocations: &Allocations, span: Range<u32>, most: u32) -> Vec<Vec<u64>> {
        let end = span.end.min(allocations.events);
        let begin = span.start.min(end);
        let width = (end - begin).div_ceil(most.max(1)).max(1);
        if begin == end {
            return Vec::new();
        }
        if width >= 2 * BLOCK {
            // Round up to whole blocks, so that no column has to visit single events.
            let width = width.div_ceil(BLOCK);
            let blocks: Vec<u32> = (begin / BLOCK..end.div_ceil(BLOCK)).collect();
            let column = |blocks: &[u32]| {
                let rows = blocks.iter().map(|&block| self.row(&self.highest, block));
                let highest = rows.max_by_key(|row| row.iter().sum::<u64>());
                highest.unwrap_or_default().to_vec()
            };
            return blocks.chunks(width as usize).map(column).collect();
        }
        let mut sums = self.row(&self.before, begin / BLOCK).to_vec();
        for event in begin / BLOCK * BLOCK..begin {
            self.step(allocations, event, &mut sums);
        }
        let mut columns = Vec::new();
        for first in (begin..end).step_by(width as usize) {
            let mut highest = Highest::of(&sums);
            let mut is_first = true;
            for event in first..end.min(first + width) {
                self.step(allocations, event, &mut sums);
                // If every event has its own column, the column shows the state after the event.
                if is_first && width == 1 {
                    highest = Highest::of(&sums);
                }
                is_first = false;
                highest.meet(&sums);
            }
            columns.push(highest.sums);
        }
        columns
    }
}

/// The sums at the highest total so far.
struct Highest {
    sums: Vec<u64>,
    total: u64,
}

impl Highest {
    fn of(sums: &[u64]) -> Self {
        Self {
            sums: sums.to_vec(),
            total: sums.iter().sum(),
        }
    }

    fn meet(&mut self, sums: &[u64]) {
        let total = sums.iter().sum();
        if total > self.total {
            self.total = total;
            self.sums.copy_from_slice(sums);
        }
    }
}
