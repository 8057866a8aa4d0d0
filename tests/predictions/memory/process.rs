//! Simulates a process that trains a model, drops it, and trains another one.

use std::collections::HashMap;

use vramscope_engine::allocator::{Block, CachingAllocator, Options, OutOfMemory};
use vramscope_engine::simulate::Recording;
use vramscope_engine::tape::Kind;
use vramscope_engine::tape::log::{Event, StorageId};
use vramscope_engine::units::Bytes;

/// Result of one run.
pub struct Trained {
    pub fits: bool,
    pub allocated: u64,
    pub reserved: u64,
    /// Number of retries in the process so far.
    pub retries: u64,
}

/// A process with a memory limit, as `max_batch.py` runs it: the cache is emptied before each run, and libraries keep
/// their workspaces to the end.
pub struct Process {
    allocator: CachingAllocator,
    /// Blocks of each storage; a recreated state temporarily has two.
    live: HashMap<StorageId, Vec<Block>>,
    /// Workspaces by library and by number of its workspaces created before: one for each thread.
    workspaces: HashMap<(&'static str, usize), Block>,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            allocator: CachingAllocator::new(Options::default()),
            live: HashMap::new(),
            workspaces: HashMap::new(),
        }
    }
}

/// The storages of a run that are workspaces.
type Workspaces = HashMap<StorageId, (&'static str, usize)>;

impl Process {
    pub fn set_limit(&mut self, limit: Bytes) {
        self.allocator.set_limit(limit);
    }

    /// Creates a model, trains some steps and drops everything.
    pub fn train(&mut self, run: &Recording, steps: usize) -> Trained {
        self.allocator.empty_cache();
        self.allocator.reset_peaks();
        let fits = self.steps(run, steps).is_ok();
        let trained = Trained {
            fits,
            allocated: self.allocator.peak_allocated().get(),
            reserved: self.allocator.peak_reserved().get(),
            retries: self.allocator.num_alloc_retries(),
        };
        let mut ids: Vec<StorageId> = self.live.keys().copied().collect();
        ids.sort_unstable();
        for block in ids.iter().filter_map(|id| self.live.remove(id)).flatten() {
            self.allocator.free(block);
        }
        trained
    }

    fn steps(&mut self, run: &Recording, steps: usize) -> Result<(), OutOfMemory> {
        let workspaces = workspaces(run);
        self.play(run, &run.build, &workspaces)?;
        self.play(run, &run.first.events, &workspaces)?;
        (1..steps).try_for_each(|_| self.play(run, &run.steady.events, &workspaces))
    }

    fn play(&mut self, run: &Recording, events: &[Event], workspaces: &Workspaces) -> Result<(), OutOfMemory> {
        for event in events {
            let id = event.storage();
            let bytes = run.log.allocations[id as usize].bytes;
            if let Some(key) = workspaces.get(&id) {
                if event.is_alloc() && !self.workspaces.contains_key(key) {
                    let block = self.allocator.alloc(bytes, 0)?;
                    self.workspaces.insert(*key, block);
                }
                continue;
            }
            let blocks = self.live.entry(id).or_default();
            if event.is_alloc() {
                blocks.push(self.allocator.alloc(bytes, 0)?);
            } else if !blocks.is_empty() {
                self.allocator.free(blocks.remove(0));
            }
        }
        Ok(())
    }
}

fn workspaces(run: &Recording) -> Workspaces {
    let mut made: HashMap<&'static str, usize> = HashMap::new();
    let allocations = run.log.allocations.iter().enumerate();
    allocations
        .filter(|(_, allocation)| allocation.kind == Kind::Workspace)
        .map(|(id, allocation)| {
            let before = made.entry(allocation.name).or_default();
            *before += 1;
            (id as StorageId, (allocation.name, *before - 1))
        })
        .collect()
}
