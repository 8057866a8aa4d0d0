//! Replays a run in a fresh process, from its recording or while it is being recorded.

use super::replay::Replay;
use super::replayer::Replayer;
use super::steps::{Recording, Step};
use crate::allocator::{CachingAllocator, Options, OutOfMemory, PoolKind};
use crate::report::{Reserved, SegmentLayout, StepBytes};
use crate::tape::Mark;
#[cfg(not(target_family = "wasm"))]
use crate::tape::{Rest, log::Event};
use crate::units::Bytes;

/// Three steps in a fresh process, as far as they have been replayed.
pub(super) struct ProcessReplay {
    replayer: Replayer,
    after_model: Bytes,
    first: StepBytes,
    /// Last mark reached, of the first step at most.
    reached: Option<Mark>,
    /// Number of replayed events of making the model, or then of the first step.
    played: usize,
}

impl ProcessReplay {
    /// Starts the replay of a run that is still to be recorded, on one stream.
    #[cfg(not(target_family = "wasm"))]
    pub fn unknown(options: &Options) -> Self {
        let allocator = CachingAllocator::new(options.clone());
        Self::new(Replayer::new(std::iter::empty(), &[], allocator))
    }

    /// Starts the replay of a recorded run.
    pub fn recorded(recording: &Recording, options: &Options) -> Self {
        let allocator = CachingAllocator::new(options.clone());
        Self::new(Replayer::new(
            recording.log.allocations.requests_from(0),
            &recording.streams,
            allocator,
        ))
    }

    fn new(replayer: Replayer) -> Self {
        Self {
            replayer,
            after_model: Bytes::ZERO,
            first: StepBytes::default(),
            reached: None,
            played: 0,
        }
    }

    /// Replays the next recorded events; `requests` are the bytes of their new storages.
    #[cfg(not(target_family = "wasm"))]
    pub fn receive(&mut self, requests: Vec<u64>, events: &[Event]) -> Result<(), OutOfMemory> {
        self.replayer.know(requests.into_iter());
        self.replayer.play(events)?;
        self.played += events.len();
        Ok(())
    }

    /// Notes the figures at a mark.
    #[cfg(not(target_family = "wasm"))]
    pub fn reach(&mut self, mark: Mark) {
        self.replayer.reach(mark, &mut self.first);
        match mark {
            Mark::Model => self.begin(),
            _ => self.reached = Some(mark),
        }
    }

    /// Begins the first step.
    fn begin(&mut self) {
        self.after_model = self.replayer.allocator().allocated();
        self.reached = Some(Mark::Model);
        self.played = 0;
        self.replayer.restart();
    }

    /// Replays the rest of a run: the first step's update, after its forward and backward, and the steps after it,
    /// which are `steady`. Returns the segments of the small pool too.
    #[cfg(not(target_family = "wasm"))]
    pub fn finish_received(mut self, rest: &Rest, steady: &Step) -> Result<(Replay, Vec<Bytes>), OutOfMemory> {
        for (events, mark) in [(&rest.updates[0], Mark::AfterOptimizer), (&rest.zero_grad, Mark::End)] {
            self.replayer.play(events)?;
            self.replayer.reach(mark, &mut self.first);
        }
        self.repeat(steady)
    }

    /// Replays the rest of a recorded run. Returns the segments of the small pool too.
    pub fn finish(mut self, recording: &Recording) -> Result<(Replay, Vec<Bytes>), OutOfMemory> {
        let allocations = &recording.log.allocations;
        self.replayer.know(allocations.requests_from(self.replayer.known()));
        if self.reached.is_none() {
            let emptied = recording.emptied.iter().map(|at| at - self.played);
            let emptied: Vec<usize> = emptied.collect();
            self.replayer.build(&recording.build[self.played..], &emptied)?;
            self.begin();
        }
        let so_far = (self.reached, self.played);
        self.replayer.rest_of_step(&recording.first, so_far, &mut self.first)?;
        self.repeat(&recording.steady)
    }

    /// Replays the second step, and the third.
    fn repeat(self, steady: &Step) -> Result<(Replay, Vec<Bytes>), OutOfMemory> {
        let Self {
            mut replayer,
            after_model,
            first,
            ..
        } = self;
        // The second step begins with optimizer states and a cache that the first lacked, so its figures differ from
        // both others; the third is the steady one. It is replayed only if the second moved anything.
        let before = replayer.lasting();
        let second = replayer.step(steady)?;
        let third = if replayer.settle(&before) {
            second
        } else {
            replayer.step(steady)?
        };
        let small: Vec<Bytes> = replayer.segments(PoolKind::Small).collect();
        let segments = small.iter().copied().chain(replayer.segments(PoolKind::Large));
        let reserved = vec![Reserved::new(SegmentLayout::FreshProcess, segments)];
        let replay = Replay {
            after_model,
            steps: [first, second, third],
            reserved,
            peak: replayer.peak(),
            block_bytes: replayer.block_bytes(),
            initial: before.storages(),
        };
        Ok((replay, small))
    }
}
