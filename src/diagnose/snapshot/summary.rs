//! Summarises a snapshot for the findings and for display.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::stacks::{Frame, StackId, Stacks};
use super::what_if::Failure;
use super::{Allocation, Allocations, Category, Expandable, Holes, Settings, Snapshot};
use vramscope_engine::units::Bytes;

/// Summary of one device's recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Index of the device.
    pub device: u32,
    /// Number of recorded events.
    pub events: u32,
    /// True if the recording began with an empty allocator.
    pub is_from_start: bool,
    /// True if the events have Python stacks.
    pub has_stacks: bool,
    /// Index of the event after which live memory was highest.
    pub peak_event: u32,
    /// Live bytes at the peak.
    pub peak: Bytes,
    /// Live bytes at the peak, by category in the order of [`Category::ALL`].
    pub at_peak: Vec<(Category, Bytes)>,
    /// Live bytes over the recording, by category in the order of [`Category::ALL`]: at most 200 columns, each the
    /// maximum of its span.
    pub columns: Vec<[Bytes; Category::ALL.len()]>,
    /// The largest groups of allocations at the peak.
    pub largest: Vec<Group>,
    /// Groups of allocations that the recording made and never freed, except weights, gradients and optimizer states.
    pub never_freed: Vec<Group>,
    /// Live bytes at the end of each step.
    pub steps: Vec<Bytes>,
    /// Segments at the moment of the snapshot.
    pub holes: Holes,
    /// Size, free bytes and largest free block of the partly occupied segments that waste most.
    pub worst: Vec<[Bytes; 3]>,
    /// The request that failed, if any.
    pub failure: Option<Failure>,
    /// Replay of the recording with expandable segments; `None` if it used them already.
    pub expandable: Option<Expandable>,
    /// Settings of the allocator.
    pub settings: Settings,
}

/// Allocations of one category that one stack made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Category of the allocations.
    pub category: Category,
    /// Sum of their bytes.
    pub bytes: Bytes,
    /// Number of allocations.
    pub count: u64,
    /// Bytes of the largest allocation.
    pub largest: Bytes,
    /// Frames, innermost first, with the framework's frames folded: `modeling_gpt2.py:240 forward`.
    pub stack: Vec<String>,
}

/// Largest number of groups and of segments kept.
const KEPT: usize = 10;

/// Largest number of columns of the curve.
const COLUMNS: u32 = 200;

/// A snapshot, and the allocations of its devices that have events or segments.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    pub snapshot: Snapshot,
    /// Allocations by device index.
    pub allocations: Vec<(u32, Allocations)>,
}

impl Read {
    /// Collects the allocations of a snapshot.
    pub fn of(snapshot: Snapshot) -> Self {
        let has_segments = |device: usize| {
            snapshot
                .segments
                .iter()
                .any(|segment| segment.device as usize == device)
        };
        let all = 0..snapshot.devices.len();
        let devices = all.filter(|&i| !snapshot.devices[i].events.is_empty() || has_segments(i));
        let allocations = devices
            .map(|device| (device as u32, Allocations::of(&snapshot, device)))
            .collect();
        Self { snapshot, allocations }
    }

    /// Summarises each device.
    pub fn summaries(&self) -> Vec<Summary> {
        let summary = |(device, own): &(u32, Allocations)| Summary::of(&self.snapshot, *device as usize, own);
        self.allocations.iter().map(summary).collect()
    }
}

impl Snapshot {
    /// Summarises the devices that have events or segments.
    pub fn summaries(self) -> Vec<Summary> {
        Read::of(self).summaries()
    }
}

impl Summary {
    /// Summarises one device of a snapshot, given its allocations.
    pub fn of(snapshot: &Snapshot, device: usize, allocations: &Allocations) -> Self {
        let (peak_event, peak) = allocations.peak();
        let segments = || {
            snapshot
                .segments
                .iter()
                .filter(move |segment| segment.device as usize == device)
        };
        let failure = Failure::of(snapshot, device);
        let sum = |category: Category| {
            let live = allocations.live_at(peak_event).filter(|a| a.category == category);
            Bytes::new(live.map(|a| a.bytes).sum())
        };
        let mut worst: Vec<[Bytes; 3]> = segments()
            .map(|segment| {
                let live = segment.live();
                [segment.size, segment.size.saturating_sub(live), segment.largest_hole()]
            })
            .filter(|[size, free, _]| free > &Bytes::ZERO && free < size)
            .collect();
        worst.sort_by_key(|[_, free, _]| std::cmp::Reverse(*free));
        worst.truncate(KEPT);
        let kept = [
            Category::Weight,
            Category::Gradient,
            Category::OptimizerState,
            Category::Before,
        ];
        let leaked = allocations
            .live_at(allocations.events.saturating_sub(1))
            .filter(|a| !kept.contains(&a.category));
        Self {
            device: device as u32,
            events: allocations.events,
            is_from_start: allocations.is_from_start,
            has_stacks: !snapshot.stacks.is_empty(),
            peak_event,
            peak: Bytes::new(peak),
            at_peak: Category::ALL.map(|category| (category, sum(category))).to_vec(),
            columns: allocations.columns(COLUMNS),
            largest: groups(allocations.live_at(peak_event), &snapshot.stacks, KEPT),
            never_freed: groups(leaked, &snapshot.stacks, KEPT),
            steps: live_after_steps(allocations),
            holes: Holes::of(segments()),
            worst,
            failure,
            expandable: Expandable::of(snapshot, device, allocations, failure),
            settings: snapshot.settings.clone(),
        }
    }
}

/// Groups allocations by stack and category, the largest first; ties keep the order of their stacks.
pub(super) fn groups<'a>(
    allocations: impl Iterator<Item = &'a Allocation>,
    stacks: &Stacks,
    most: usize,
) -> Vec<Group> {
    let mut sums: HashMap<(Category, StackId), [u64; 3]> = HashMap::new();
    for allocation in allocations {
        let [bytes, count, largest] = sums.entry((allocation.category, allocation.stack)).or_default();
        *bytes += allocation.bytes;
        *count += 1;
        *largest = (*largest).max(allocation.bytes);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|&((category, stack), [bytes, ..])| (std::cmp::Reverse(bytes), stack, category));
    sums.truncate(most);
    let group = |((category, stack), [bytes, count, largest]): ((Category, StackId), [u64; 3])| Group {
        category,
        bytes: Bytes::new(bytes),
        count,
        largest: Bytes::new(largest),
        stack: folded(stacks.frames(stack)),
    };
    sums.into_iter().map(group).collect()
}

/// The place a person would name: the innermost frame outside PyTorch; empty if no stack was recorded.
pub(crate) fn place_of<'a>(frames: impl Iterator<Item = &'a Frame> + Clone) -> String {
    let own = frames.clone().find(|frame| !is_passed_through(frame));
    own.or_else(|| frames.into_iter().next())
        .map_or_else(String::new, written)
}

/// Returns true if a frame only passes a call on.
fn is_passed_through(frame: &Frame) -> bool {
    let has = |part: &str| frame.file.contains(part);
    let is_installed = has("-packages");
    let is_framework = has("-packages/torch/") || has("-packages\\torch\\") || has("??");
    // Python's standard library.
    let is_framework = is_framework || has("importlib") || has("/lib/python3") && !is_installed;
    // Wrappers around every forward of transformers.
    let is_wrapper = matches!(
        frame.name.as_str(),
        "wrapper" | "wrapped" | "__call__" | "decorate_context" | "inner"
    );
    is_framework || is_wrapper
}

/// Formats a frame as `modeling_gpt2.py:240 forward`.
fn written(frame: &Frame) -> String {
    let file = frame.file.rsplit(['/', '\\']).next().unwrap_or(&frame.file);
    format!("{file}:{} {}", frame.line, frame.name)
}

/// The informative frames: the innermost, and those outside PyTorch.
pub(crate) fn folded<'a>(frames: impl Iterator<Item = &'a Frame>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for (i, frame) in frames.enumerate() {
        if i > 0 && is_passed_through(frame) {
            continue;
        }
        out.push(written(frame));
        if out.len() == 5 {
            break;
        }
    }
    out
}

fn live_after_steps(allocations: &Allocations) -> Vec<Bytes> {
    let mut steps = allocations.steps.iter().peekable();
    let (mut out, mut last) = (Vec::new(), 0);
    allocations.walk(|at, total| {
        while steps.next_if(|&&step| step <= at).is_some() {
            out.push(Bytes::new(last));
        }
        last = total;
    });
    out.extend(steps.map(|_| Bytes::new(last)));
    out
}
