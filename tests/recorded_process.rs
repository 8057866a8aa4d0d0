//! Runs that were measured one after another in one process, simulated one after another: each finds
//! cached what cuBLAS' workspaces of the one before kept from being given back.
//!
//! `measure.py` empties the cache, then frees the workspaces, and goes on with the next case. With
//! that history the reserved bytes are the measured ones in most rows, for one or the other order of
//! addresses; so what a prediction of one run alone errs by is what it cannot know: what ran before.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

use std::collections::HashMap;

use vramscope_engine::Model;
use vramscope_engine::allocator::{
    AscendingAddresses, Block, CachingAllocator, DriverAddresses, Options, SegmentSource,
};
use vramscope_engine::simulate::{Recording, record};
use vramscope_engine::tape::log::{Event, Log, StorageId};
use vramscope_engine::tape::{Gpu, Kind};
use vramscope_tests::measured::{Measured, Row};

/// One run of `measure.py`.
struct Expected {
    file: &'static str,
    /// `timed` steps after the three that are measured.
    timed: usize,
    /// Rows whose reserved bytes are the measured ones.
    exact_at_least: usize,
    /// Largest under-prediction of any row.
    under: f64,
    /// Rows that a segment left behind by the case before takes far from what they reserve alone.
    by_history: &'static [usize],
}

#[test]
fn reserved_bytes_are_the_measured_ones_of_the_process() {
    hold(&Expected {
        file: "training_steps.jsonl",
        timed: 3,
        exact_at_least: 85,
        under: 0.03,
        by_history: &[70],
    });
}

#[test]
fn reserved_bytes_of_cases_that_were_held_out_are_those_of_their_process() {
    hold(&Expected {
        file: "held_out_all_models.jsonl",
        timed: 1,
        exact_at_least: 79,
        under: 0.032,
        by_history: &[24, 40, 101],
    });
}

fn hold(expected: &Expected) {
    let mut fresh = Process::new(DriverAddresses::default(), expected.timed);
    let mut ascending = Process::new(AscendingAddresses::default(), expected.timed);
    let (mut exact, mut under) = (0, Vec::new());
    for row in Row::read_all(expected.file) {
        let Measured::Trained(fields) = &row.measured else {
            continue;
        };
        let run = record(&Model::from_case(&row.case).unwrap(), &row.case.setup, Gpu::H200);
        let measured = fields["reserved_peak"].as_u64().unwrap();
        let reserved = [fresh.train(&run), ascending.train(&run)];
        let is_exact = reserved.contains(&measured);
        exact += usize::from(is_exact);
        assert!(
            is_exact || !expected.by_history.contains(&row.index),
            "row {}",
            row.index
        );
        if reserved
            .iter()
            .all(|&bytes| (bytes as f64) < (1.0 - expected.under) * measured as f64)
        {
            under.push((row.index, row.options.clone(), reserved, measured));
        }
    }
    assert!(under.is_empty(), "{under:#?}");
    assert!(
        exact >= expected.exact_at_least,
        "only {exact} rows reserve what was measured"
    );
}

/// One process, with what lives in it.
struct Process<S> {
    allocator: CachingAllocator<S>,
    /// Blocks of each storage; a state that is made anew has two for a moment.
    live: HashMap<StorageId, Vec<Block>>,
    /// Steps after the three that are measured.
    timed: usize,
}

impl<S: SegmentSource> Process<S> {
    fn new(source: S, timed: usize) -> Self {
        Self {
            timed,
            allocator: CachingAllocator::with_source(Options::default(), source),
            live: HashMap::new(),
        }
    }

    /// Makes a model, trains it and drops it: the reserved bytes after three steps.
    fn train(&mut self, run: &Recording) -> u64 {
        self.play(&run.log, &run.build);
        self.allocator.empty_cache();
        self.play(&run.log, &run.first.events);
        self.play(&run.log, &run.steady.events);
        self.play(&run.log, &run.steady.events);
        let reserved = self.allocator.reserved().get();
        for _ in 0..self.timed {
            self.play(&run.log, &run.steady.events);
        }
        self.leave(&run.log);
        reserved
    }

    /// Drops the run, empties the cache, and only then frees the workspaces.
    fn leave(&mut self, log: &Log) {
        let is_workspace = |id: &StorageId| log.births[*id as usize].kind == Kind::Workspace;
        self.free(|id| !is_workspace(id));
        self.allocator.empty_cache();
        self.free(is_workspace);
    }

    fn play(&mut self, log: &Log, events: &[Event]) {
        for event in events {
            let id = event.storage();
            let blocks = self.live.entry(id).or_default();
            if event.is_birth() {
                blocks.push(self.allocator.alloc(log.births[id as usize].bytes, 0).unwrap());
            } else if !blocks.is_empty() {
                self.allocator.free(blocks.remove(0));
            }
        }
    }

    /// Frees those of which `of` is true, in the order of birth.
    fn free(&mut self, of: impl Fn(&StorageId) -> bool) {
        let mut ids: Vec<StorageId> = self.live.keys().copied().filter(of).collect();
        ids.sort_unstable();
        for block in ids.iter().filter_map(|id| self.live.remove(id)).flatten() {
            self.allocator.free(block);
        }
    }
}
