//! When parameters of ZeRO stage 3 are gathered and released (`deepspeed/runtime/zero/partitioned_param_coordinator.py`).

use std::collections::{HashMap, VecDeque};

use super::shards::Shards;
use crate::setup::Zero;
use crate::tape::Tape;

/// What is known of the order of modules (`ZeRoTraceMode`). DeepSpeed gathers ahead only along an order that it has
/// seen, so the first pass, and one after a change of the order, hold fewer parameters at once than all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trace {
    /// A pass went another way than the one before: nothing is recorded until the next begins.
    Invalid,
    /// The order is being recorded: nothing is gathered ahead.
    Recording,
    /// The order is that of the pass before.
    Complete,
}

/// A module.
#[derive(Default)]
pub(super) struct Module {
    /// Its own parameters, in the model's order.
    pub params: Vec<usize>,
    /// Frozen parameters that a recomputation gathered while this was the module whose backward ran last.
    recomputed: Vec<usize>,
}

/// Gathers parameters before modules run, and releases them after.
pub(super) struct Coordinator {
    pub shards: Shards,
    pub modules: Vec<Module>,
    zero: Zero,
    trace: Trace,
    /// Modules in the order in which they ran.
    order: Vec<usize>,
    /// Modules that ran in this pass.
    step: usize,
    /// Parameters to be fetched in this pass, each with the step that uses it.
    queue: VecDeque<(usize, usize)>,
    /// Last step of this pass for which each parameter was fetched.
    fetched_for: Vec<Option<usize>>,
    /// What is released after a module at a step, once it was found (`lru_cache`).
    released: HashMap<(usize, usize), Vec<usize>>,
    /// Modules whose backward runs.
    active: Vec<usize>,
    /// True if an optimizer releases what persists, and gathers it again (`release_all`). A model without one keeps it from the
    /// second pass on, which no step stands for: from the first here.
    is_trained: bool,
}

impl Coordinator {
    pub fn new(shards: Shards, modules: Vec<Module>, (zero, is_trained): (Zero, bool)) -> Self {
        Self {
            fetched_for: vec![None; shards.list.len()],
            shards,
            modules,
            zero,
            trace: Trace::Invalid,
            order: Vec::new(),
            step: 0,
            queue: VecDeque::new(),
            released: HashMap::new(),
            active: Vec::new(),
            is_trained,
        }
    }

    /// `reset_step`, at the beginning of each forward: DeepSpeed records the order in one pass and gathers ahead in the next.
    pub fn reset(&mut self, t: &Tape) {
        // What the pass before gathered ahead and did not use is released here, not where it was left: until then it
        // counts.
        self.shards.land(t);
        self.trace = match self.trace {
            Trace::Invalid => Trace::Recording,
            Trace::Recording | Trace::Complete => Trace::Complete,
        };
        match self.trace {
            Trace::Recording | Trace::Invalid => self.order.clear(),
            Trace::Complete => {
                let uses = self.order.iter().enumerate();
                self.queue = uses
                    .flat_map(|(step, &module)| self.modules[module].params.iter().map(move |&at| (at, step)))
                    .collect();
            }
        }
        self.fetched_for.fill(None);
        self.step = 0;
        self.shards.available = 0;
    }

    /// `trace_prologue`: another module than the one that was recorded here makes the order worthless. What was gathered ahead
    /// is released, and nothing is until an order is recorded anew.
    fn check(&mut self, t: &Tape, module: usize) {
        if self.trace == Trace::Complete && self.order.get(self.step) != Some(&module) {
            self.invalidate(t);
        }
    }

    /// `_invalidate_trace`.
    pub fn invalidate(&mut self, t: &Tape) {
        self.trace = Trace::Invalid;
        self.order.clear();
        self.queue.clear();
        self.fetched_for.fill(None);
        self.shards.land(t);
    }

    /// `fetch_sub_module`.
    pub fn fetch(&mut self, t: &Tape, module: usize, is_forward: bool) {
        t.hook(
            match is_forward {
                true => "deepspeed module forward",
                false => "deepspeed module backward",
            },
            1,
        );
        self.check(t, module);
        if !is_forward {
            self.active.retain(|&other| other != module);
            self.active.push(module);
        }
        if self.trace == Trace::Recording {
            self.order.push(module);
        }
        let wanted = self.modules[module].params.clone();
        self.shards.start(t, &wanted);
        // Checkpointing runs a block's forward within backward. The frozen parameters that this gathers are kept with
        // the module whose backward runs, and are released when that is over.
        let is_recomputed = is_forward && t.is_in_backward();
        for &at in &wanted {
            insert_once(&mut self.shards.list[at].users, module);
            if let Some(&owner) = self.active.last().filter(|_| is_recomputed)
                && !self.shards.list[at].param.requires_grad()
            {
                insert_once(&mut self.modules[owner].recomputed, at);
                insert_once(&mut self.shards.list[at].users, owner);
            }
            self.shards.wait(t, at);
        }
        if self.trace == Trace::Complete {
            // In this order, as in `fetch_sub_module`: what is used now must not be gathered ahead for a later module.
            self.discard(&wanted);
            self.prefetch(t);
        }
        self.step += 1;
    }

    /// `ZeROOrderedDict.__getitem__`: a parameter of another module that is away is gathered, and is one of this module's
    /// from then on (`register_external_parameter`).
    pub fn ask(&mut self, t: &Tape, at: usize, module: usize) {
        if self.shards.is_away(at) && !self.modules[module].params.contains(&at) {
            self.modules[module].params.push(at);
            self.modules[module].params.sort_unstable();
            t.in_scope(0, || self.shards.gather_at_once(t, at));
        }
    }

    /// Takes the parameters that a module uses now out of the queue, unless they were fetched ahead.
    fn discard(&mut self, wanted: &[usize]) {
        let new = wanted
            .iter()
            .filter(|&&at| self.fetched_for[at].is_none_or(|step| step < self.step));
        // As many are popped as the module uses for the first time since they were fetched. DeepSpeed raises if they are
        // others ("tracing error at step"), which [`Self::check`] rules out.
        let count = new.count();
        let mut discarded: Vec<usize> = Vec::new();
        while discarded.len() < count {
            let Some((at, step)) = self.queue.pop_front() else {
                break;
            };
            self.fetched_for[at] = Some(step);
            insert_once(&mut discarded, at);
        }
    }

    /// Gathers what the next modules use.
    fn prefetch(&mut self, t: &Tape) {
        if self.zero.stage3_prefetch_bucket_size == 0 {
            return;
        }
        // Both limits are in elements. The last parameter may go beyond them: it is compared before it is added.
        let room = self.zero.stage3_max_live_parameters as i64 - self.shards.available;
        let most = room.min(self.zero.stage3_prefetch_bucket_size as i64);
        let (mut ahead, mut elements) = (Vec::new(), 0);
        while elements < most {
            let Some((at, step)) = self.queue.pop_front() else {
                break;
            };
            // A parameter that two modules share is in the queue twice; of its uses the last decides when it is released.
            let known = self.fetched_for[at].map_or(step, |known| known.max(step));
            self.fetched_for[at] = Some(known);
            if self.shards.is_away(at) && !ahead.contains(&at) {
                ahead.push(at);
                elements += self.shards.list[at].elements as i64;
            }
        }
        self.shards.start(t, &ahead);
    }

    /// `release_sub_module`.
    pub fn release(&mut self, t: &Tape, module: usize, is_forward: bool) {
        // While the order is recorded nobody knows what comes next, so a module's parameters go at once, and a tied one is
        // gathered again for its next use.
        let mut freed = match self.trace {
            Trace::Recording | Trace::Invalid => {
                let own = self.modules[module].params.iter().copied();
                own.filter(|&at| self.is_trained || !self.shards.list[at].persists)
                    .collect()
            }
            Trace::Complete => self.released_after(module),
        };
        let mut params = self.modules[module].params.clone();
        if !is_forward {
            for at in std::mem::take(&mut self.modules[module].recomputed) {
                insert_once(&mut params, at);
                if !self.shards.list[at].persists {
                    freed.push(at);
                }
            }
            self.active.retain(|&other| other != module);
        }
        for at in params {
            self.shards.list[at].users.retain(|&user| user != module);
            if freed.contains(&at) {
                self.shards.release(t, at);
            }
        }
    }

    /// `__params_to_release`: a module's parameters but those that persist, that were fetched ahead for a later use, or
    /// that are used again soon.
    fn released_after(&mut self, module: usize) -> Vec<usize> {
        // `lru_cache` outlives the pass: DeepSpeed computes this once for each module and step, with what was fetched
        // ahead then. Computed anew it would follow the present pass and release other parameters.
        let key = (module, self.step);
        if let Some(known) = self.released.get(&key) {
            return known.clone();
        }
        let is_over =
            |at: &usize| !self.shards.list[*at].persists && self.fetched_for[*at].is_none_or(|step| step <= self.step);
        let mut freed: Vec<usize> = self.modules[module].params.iter().copied().filter(is_over).collect();
        let mut traversed = 0;
        for &next in self.order.iter().skip(self.step) {
            // A parameter that is used again within this distance stays, instead of being gathered again at once.
            if traversed >= self.zero.stage3_max_reuse_distance {
                break;
            }
            for &at in &self.modules[next].params {
                freed.retain(|&other| other != at);
                traversed += self.shards.list[at].elements;
            }
        }
        self.released.insert(key, freed.clone());
        freed
    }

    /// `release_backward_leftovers`: modules whose input needs no gradient are not told that their backward is over.
    pub fn release_leftovers(&mut self, t: &Tape) {
        while let Some(module) = self.active.pop() {
            let mut params = self.modules[module].params.clone();
            params.append(&mut self.modules[module].recomputed);
            for at in params {
                self.shards.list[at].users.retain(|&user| user != module);
                if !self.shards.list[at].persists {
                    self.shards.release(t, at);
                }
            }
        }
    }
}

/// Adds an element to a set that keeps its order, as DeepSpeed's `OrderedSet` and Python's dictionaries do.
fn insert_once(set: &mut Vec<usize>, new: usize) {
    if !set.contains(&new) {
        set.push(new);
    }
}
