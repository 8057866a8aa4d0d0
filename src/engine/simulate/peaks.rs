//! Peaks of a step without replaying hundreds of thousands of small tensors.
//!
//! A block of the small pool is always split to the exact request, so that its bytes can be counted; the large pool's
//! blocks depend on its cached ones, and are replayed. The addresses of its segments depend on those of the small pool
//! too, and so does the choice between two equal blocks: so the results are those of a process with another order of
//! segments, within a ten-thousandth of the simulated ones. Reserved bytes cannot be computed this way.

use std::collections::VecDeque;

use super::SimulateError;
use super::steps::{Notes, Recording, Step, record_notes};
use crate::allocator::{Block, CachingAllocator, MIN_BLOCK, Options, OutOfMemory, PoolKind};
use crate::report::StepBytes;
use crate::tape::Gpu;
use crate::tape::log::Event;
use crate::units::Bytes;
use crate::{Model, Setup};

/// Allocated bytes of the steady step, as [`simulate_on`](super::simulate_on) reports them except for the order of
/// segments, for searches over many setups.
///
/// # Errors
/// Returns the errors of [`simulate_on`](super::simulate_on).
pub fn steady_bytes(model: &Model, setup: &Setup, gpu: Gpu) -> Result<StepBytes, SimulateError> {
    let notes = Notes {
        work: false,
        sums: true,
    };
    let recording = record_notes(model, setup, gpu, notes)?;
    Pools::new(&recording).run(&recording).map_err(SimulateError::from)
}

/// Both pools: the small one counted, the large one replayed.
struct Pools {
    /// Bytes of each storage, and true if it is counted.
    storages: Vec<(u64, bool)>,
    allocator: CachingAllocator,
    /// Blocks of each replayed storage: two while it is made anew before the old one is freed.
    blocks: Vec<VecDeque<Block>>,
    /// Number of live copies of each counted storage.
    live: Vec<u8>,
    counted: u64,
    highest: u64,
}

impl Pools {
    fn new(recording: &Recording) -> Self {
        let allocations = recording.log.allocations.iter();
        let storages: Vec<(u64, bool)> = allocations
            .map(|allocation| {
                let is_counted = allocation.is_lump() || PoolKind::of(allocation.bytes) == PoolKind::Small;
                let counted = allocation.bytes.next_multiple_of(MIN_BLOCK);
                (if is_counted { counted } else { allocation.bytes }, is_counted)
            })
            .collect();
        Self {
            blocks: vec![VecDeque::new(); storages.len()],
            live: vec![0; storages.len()],
            storages,
            allocator: CachingAllocator::new(Options::default()),
            counted: 0,
            highest: 0,
        }
    }

    /// Replays making the model, `torch.cuda.empty_cache()`, what prepares it, and three steps; returns the figures of the last.
    fn run(mut self, recording: &Recording) -> Result<StepBytes, OutOfMemory> {
        let mut from = 0;
        for &at in &recording.emptied {
            self.play(&recording.build[from..at])?;
            self.allocator.empty_cache();
            from = at;
        }
        self.play(&recording.build[from..])?;
        self.step(&recording.first)?;
        self.step(&recording.steady)?;
        self.step(&recording.steady)
    }

    fn step(&mut self, Step { events, marks }: &Step) -> Result<StepBytes, OutOfMemory> {
        let mut out = StepBytes::default();
        self.play(&events[..marks.before_forward])?;
        out.before_forward = self.now();
        out.peak_forward = self.play(&events[marks.before_forward..marks.after_forward])?;
        out.after_forward = self.now();
        out.peak_backward = self.play(&events[marks.after_forward..marks.after_backward])?;
        out.after_backward = self.now();
        out.peak_optimizer = self.play(&events[marks.after_backward..marks.after_optimizer])?;
        self.play(&events[marks.after_optimizer..])?;
        out.end = self.now();
        Ok(out)
    }

    fn now(&self) -> Bytes {
        self.allocator.allocated() + Bytes::new(self.counted)
    }

    /// Replays events and returns the highest total.
    fn play(&mut self, events: &[Event]) -> Result<Bytes, OutOfMemory> {
        self.highest = self.now().get();
        for event in events {
            let id = event.storage() as usize;
            let (bytes, is_counted) = self.storages[id];
            match (event.is_alloc(), is_counted) {
                (true, true) => {
                    self.live[id] += 1;
                    self.counted += bytes;
                }
                (true, false) => self.blocks[id].push_back(self.allocator.alloc(bytes, 0)?),
                // Frees of storages that are not live are ignored.
                (false, true) if self.live[id] > 0 => {
                    self.live[id] -= 1;
                    self.counted -= bytes;
                }
                (false, true) => {}
                (false, false) => {
                    if let Some(block) = self.blocks[id].pop_front() {
                        self.allocator.free(block);
                    }
                }
            }
            self.highest = self.highest.max(self.now().get());
        }
        Ok(Bytes::new(self.highest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::{Checkpointing, Freeze, Loss, Optimizer, Precision, Targets};
    use crate::simulate_on;

    fn compare(model: &Model, setup: &Setup) {
        let whole = simulate_on(model, setup, Gpu::H200).unwrap();
        let bytes = steady_bytes(model, setup, Gpu::H200).unwrap();
        assert_eq!(bytes.peak_phase(), whole.peak_phase, "{}: {setup:?}", model.name);
        let figures = |bytes: StepBytes| {
            [
                bytes.before_forward,
                bytes.peak_forward,
                bytes.after_forward,
                bytes.peak_backward,
                bytes.after_backward,
                bytes.peak_optimizer,
                bytes.end,
            ]
        };
        for (own, other) in figures(bytes).into_iter().zip(figures(whole.steady)) {
            let far = own.get().abs_diff(other.get());
            assert!(
                far * 10_000 <= other.get(),
                "{}: {own} for {other}, {setup:?}",
                model.name
            );
        }
    }

    #[test]
    fn it_is_what_the_whole_simulation_says_but_for_the_order_of_segments() {
        let setups = [
            Setup::default(),
            Setup {
                batch: 3,
                accum: 2,
                ckpt: Checkpointing::Full,
                precision: Precision::AmpBf16,
                optim: Optimizer::AdamwFused,
                clip: true,
                ..Setup::default()
            },
            Setup {
                freeze: Freeze::Lora,
                lora_targets: Targets::AllLinear,
                optim: Optimizer::Adafactor,
                loss: Loss::FusedLinear,
                ..Setup::default()
            },
        ];
        for name in ["qwen2.5-vl-3b", "qwen2-vl-2b", "llava-1.5-7b", "gpt2-medium"] {
            let model = Model::from_catalogue(name).unwrap();
            // GPT-2 has no layers that the default adapters target.
            let fit = |setup: &&Setup| name != "gpt2-medium" || setup.freeze == Freeze::NONE;
            for setup in setups.iter().filter(fit) {
                let setup = Setup {
                    seq: 700,
                    ..setup.clone()
                };
                compare(&model, &setup);
            }
        }
    }

    #[test]
    fn windows_that_were_summed_are_counted() {
        let model = Model::from_catalogue("qwen2.5-vl-3b").unwrap();
        for ckpt in [Checkpointing::None, Checkpointing::Full] {
            let setup = Setup {
                batch: 2,
                seq: 1500,
                image_sizes: vec![[504, 812], [252, 252]],
                ckpt,
                ..Setup::default()
            };
            compare(&model, &setup);
        }
    }
}
