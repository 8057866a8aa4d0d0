//! Replays a run through PyTorch's allocator, step by step.

use super::marks::RecordedStep;
use super::run::{Cue, Question, RecordedRun};
use crate::allocator::{
    AscendingAddresses, CachingAllocator, DriverAddresses, OutOfMemory, PoolKind, SegmentSource, ShuffledAddresses,
};
use crate::report::{BlockBytes, Phase, Reserved, SegmentLayout, StepBytes};
use crate::simulate::Replayer;
use crate::tape::Kind;
use crate::tape::log::StorageId;
use crate::units::Bytes;

/// Figures of the allocator over a recorded run.
pub(super) struct Replay {
    /// Allocated bytes before the first step.
    pub after_model: Bytes,
    /// Figures of each step.
    pub steps: Vec<StepBytes>,
    /// Highest reserved bytes of the steps, for each placement of segments.
    pub reserved: Vec<Reserved>,
    /// Bytes of each storage's block.
    pub block_bytes: BlockBytes,
    /// Storages live before the last step.
    pub initial: Vec<StorageId>,
    /// Number of events of the last step before its highest total.
    pub peak: usize,
    /// Answers to the script's questions, in order.
    pub asked: Vec<Asked>,
}

/// Answer to a question of the script; `None` if the question is not supported.
pub type Asked = Option<Bytes>;

/// Replays a run in a fresh process, then in used ones with segments placed in other orders.
pub(super) fn replay(run: &RecordedRun) -> Result<Replay, OutOfMemory> {
    let (mut replay, fresh) = played(run, Box::new(DriverAddresses::default()), false)?;
    replay.reserved.push(Reserved {
        layout: SegmentLayout::FreshProcess,
        ..fresh
    });
    // The order of segments has no effect on expandable ones.
    if run.options.expandable_segments {
        return Ok(replay);
    }
    let others: [(SegmentLayout, Box<dyn SegmentSource>); 2] = [
        (SegmentLayout::UsedProcess, Box::new(AscendingAddresses::default())),
        (SegmentLayout::DrawnOrder, Box::new(ShuffledAddresses::new(0))),
    ];
    for (layout, source) in others {
        let (_, reserved) = played(run, source, true)?;
        replay.reserved.push(Reserved { layout, ..reserved });
    }
    Ok(replay)
}

/// Action after a number of events.
#[derive(Clone, Copy)]
enum Stop {
    StepBegins(usize),
    Stretch(usize, Phase),
    Mark(usize, Mark),
    StepEnds(usize),
    Cue(Cue),
}

#[derive(Clone, Copy)]
enum Mark {
    BeforeForward,
    AfterForward,
    AfterBackward,
}

/// Returns all stops of a run, in order.
fn stops(run: &RecordedRun) -> Vec<(usize, Stop)> {
    let mut stops: Vec<(usize, Stop)> = run.cues.iter().map(|&(at, cue)| (at, Stop::Cue(cue))).collect();
    for (number, step) in run.steps.iter().enumerate() {
        let RecordedStep {
            begin,
            end,
            before_forward,
            after_forward,
            after_backward,
            ..
        } = *step;
        stops.push((begin, Stop::StepBegins(number)));
        let marks = [
            (before_forward, Mark::BeforeForward),
            (after_forward, Mark::AfterForward),
            (after_backward, Mark::AfterBackward),
        ];
        stops.extend(marks.map(|(at, mark)| (at, Stop::Mark(number, mark))));
        stops.extend(
            step.stretches
                .iter()
                .map(|&(at, phase)| (at, Stop::Stretch(number, phase))),
        );
        stops.push((end, Stop::StepEnds(number)));
    }
    crate::order::sort_by_key(&mut stops, |(at, _)| *at);
    stops
}

/// Figures read so far.
struct Meter {
    steps: Vec<StepBytes>,
    /// Current step and phase.
    now: Option<(usize, Phase)>,
    /// Highest allocated and reserved bytes since the script last reset them.
    script: [Bytes; 2],
    /// Highest reserved bytes within steps.
    reserved: Bytes,
    asked: Vec<Asked>,
}

impl Meter {
    /// Reads the peaks since the last stop.
    fn read(&mut self, replayer: &mut Replayer) {
        let allocator = replayer.allocator();
        let peaks = [allocator.peak_allocated(), allocator.peak_reserved()];
        for (highest, peak) in self.script.iter_mut().zip(peaks) {
            *highest = (*highest).max(peak);
        }
        if let Some((step, phase)) = self.now {
            let figures = &mut self.steps[step];
            let figure = match phase {
                Phase::Forward => &mut figures.peak_forward,
                Phase::Backward => &mut figures.peak_backward,
                Phase::Optimizer => &mut figures.peak_optimizer,
            };
            *figure = (*figure).max(peaks[0]);
            self.reserved = self.reserved.max(peaks[1]);
        }
        replayer.reset_peaks();
    }

    fn cue(&mut self, cue: Cue, replayer: &mut Replayer) {
        let allocator = replayer.allocator();
        let held = [allocator.allocated(), allocator.reserved()];
        match cue {
            Cue::EmptyCache => replayer.empty_cache(),
            Cue::ResetPeak => self.script = held,
            Cue::Ask(question) => self.asked.push(match question {
                Question::Allocated => Some(held[0]),
                Question::MostAllocated => Some(self.script[0]),
                Question::Reserved => Some(held[1]),
                Question::MostReserved => Some(self.script[1]),
                Question::Other => None,
            }),
        }
    }

    fn mark(&mut self, step: usize, mark: Mark, now: Bytes) {
        let figures = &mut self.steps[step];
        match mark {
            Mark::BeforeForward => figures.before_forward = now,
            Mark::AfterForward => figures.after_forward = now,
            Mark::AfterBackward => figures.after_backward = now,
        }
    }
}

/// Replays a run in a process that is `used` or fresh, with segments placed by `source`.
fn played(run: &RecordedRun, source: Box<dyn SegmentSource>, used: bool) -> Result<(Replay, Reserved), OutOfMemory> {
    let allocator = CachingAllocator::with_source(run.options.clone(), source);
    let mut replayer = Replayer::new(run.log.allocations.requests_from(0), &run.streams, allocator);
    let mut meter = Meter {
        steps: vec![StepBytes::default(); run.steps.len()],
        now: None,
        script: [Bytes::ZERO; 2],
        reserved: Bytes::ZERO,
        asked: Vec::new(),
    };
    let (mut done, mut after_model, mut initial, mut peak) = (0, Bytes::ZERO, Vec::new(), 0);
    let last = run.steps.len() - 1;
    for (at, stop) in stops(run) {
        let at = at.min(run.events.len());
        if used && done == 0 && at > 0 {
            // Fills the cache that the process holds when the script allocates its first tensor.
            replayer.leave_behind(&workspaces(run))?;
            replayer.reset_peaks();
        }
        replayer.play(&run.events[done..at])?;
        done = at;
        meter.read(&mut replayer);
        let now = replayer.allocator().allocated();
        match stop {
            Stop::StepBegins(number) => {
                replayer.restart();
                meter.now = Some((number, Phase::Forward));
                if number == 0 {
                    after_model = now.saturating_sub(inputs(run, &replayer));
                }
                if number == last {
                    initial = replayer.lasting().storages();
                }
            }
            Stop::Stretch(number, phase) => meter.now = Some((number, phase)),
            Stop::Mark(number, mark) => meter.mark(number, mark, now),
            Stop::StepEnds(number) => {
                meter.steps[number].end = now;
                meter.now = None;
                if number == last {
                    peak = replayer.peak();
                }
            }
            Stop::Cue(cue) => meter.cue(cue, &mut replayer),
        }
    }
    let segments = [PoolKind::Small, PoolKind::Large].map(|kind| replayer.segments(kind).collect::<Vec<_>>());
    let mut reserved = Reserved::new(SegmentLayout::FreshProcess, segments.into_iter().flatten());
    reserved.bytes = meter.reserved;
    let replay = Replay {
        after_model,
        steps: meter.steps,
        reserved: Vec::new(),
        block_bytes: replayer.block_bytes(),
        initial,
        peak,
        asked: meter.asked,
    };
    Ok((replay, reserved))
}

/// Returns the bytes of live batch tensors.
fn inputs(run: &RecordedRun, replayer: &Replayer) -> Bytes {
    let live = replayer.lasting().storages().into_iter();
    let inputs = live.filter(|&id| run.log.allocations[id as usize].kind == Kind::Input);
    let blocks = replayer.block_bytes();
    inputs.map(|id| Bytes::new(blocks.of(id))).sum()
}

/// Returns the large-pool workspaces of libraries, which an earlier run leaves cached.
fn workspaces(run: &RecordedRun) -> Vec<StorageId> {
    let allocations = run.log.allocations.iter().enumerate();
    allocations
        .filter(|(_, allocation)| {
            allocation.kind == Kind::Workspace && PoolKind::of(allocation.bytes) == PoolKind::Large
        })
        .map(|(id, _)| id as StorageId)
        .collect()
}
