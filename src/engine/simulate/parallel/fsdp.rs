//! Rewrites a recording for FSDP2: `fully_shard` of each block and of the root.

use super::super::steps::{Recording, Step, StepMarks};
use super::rewrite::{Piece, allocations, frees, shard};
use super::units::{ROOT, Unit, Units};
use crate::dtype::DType;
use crate::setup::{Parallel, Precision, Strategy};
use crate::tape::Kind;
use crate::tape::log::{Event, Log, ScopeId, StorageId};

/// Rewrites a step of a single GPU as one of several GPUs runs it.
///
/// - It keeps a shard of each parameter (`FSDPParam._init_sharded_param`); under CPU offload none.
/// - A unit gathers its parameters when its forward begins: into one buffer, and from it into the parameters. In
///   forward the buffer lives until the next unit's (`AllGatherState`); in backward it is freed at once, and the buffer
///   of the unit before is prefetched (`_backward_prefetch`).
/// - After its forward a unit frees its parameters if it reshards; after its backward it always does. Then its
///   gradients are copied into the input of a reduce-scatter, which lives until the next unit's, and freed
///   (`foreach_reduce`); the output holds the shards of the gradients until `zero_grad`.
/// - The optimizer sees shards.
pub(super) fn rewrite(mut recording: Recording, precision: Precision, parallel: &Parallel) -> Recording {
    let units = Units::of(&recording.log);
    let mut sharded = Sharded {
        own: match precision {
            Precision::Bf16 => DType::Bf16,
            _ => DType::F32,
        },
        parameters: vec![Vec::new(); units.count],
        units,
        parallel: *parallel,
    };
    sharded.shard_model(&mut recording);
    let (first, steady) = (recording.first, recording.steady);
    sharded.shard_updates(&mut recording.log, [&first, &steady]);
    recording.first = sharded.step(&mut recording.log, &mut recording.streams, &first);
    recording.steady = sharded.step(&mut recording.log, &mut recording.streams, &steady);
    recording
}

/// Streams whose memory the allocator keeps apart: that of the copy into a gather's buffer, and that of a
/// reduce-scatter.
const GATHER: u32 = 1;
const REDUCE: u32 = 2;

struct Sharded {
    units: Units,
    parallel: Parallel,
    /// Type of the shards.
    own: DType,
    /// Parameters of each unit.
    parameters: Vec<Vec<Parameter>>,
}

#[derive(Clone, Copy)]
struct Parameter {
    /// Elements of the largest shard.
    shard: u64,
    /// Type of the gathered parameter.
    dtype: DType,
    scope: ScopeId,
}

impl Sharded {
    /// Shards the model once all of it is made. Each block, and then the root, allocates its shards and frees the whole
    /// parameters, from whose cached memory the shards after it are served.
    fn shard_model(&mut self, recording: &mut Recording) {
        let log = &mut recording.log;
        let mut of_unit = vec![(Vec::new(), Vec::new()); self.units.count];
        for (id, _) in &mut recording.parameters {
            let whole = *id;
            let allocation = log.allocations[*id as usize];
            let parameter = Parameter {
                shard: shard(&allocation.shape, self.parallel.world),
                dtype: allocation.dtype,
                scope: allocation.scope,
            };
            let unit = self.units.unit(allocation.scope);
            self.parameters[unit].push(parameter);
            let shard = Piece {
                elements: parameter.shard,
                dtype: self.own,
                name: allocation.name,
                kind: Kind::Weight,
                scope: allocation.scope,
            };
            *id = shard.describe(log);
            of_unit[unit].0.push(*id);
            of_unit[unit].1.push(whole);
        }
        // The root, which is the first unit, comes last.
        of_unit.rotate_left(1);
        for (shards, whole) in of_unit {
            if self.parallel.offload {
                let copied = shards.iter().flat_map(|&id| [Event::alloc(id), Event::free(id)]);
                recording.build.extend(copied);
            } else {
                recording.build.extend(allocations(&shards));
            }
            recording.build.extend(frees(&whole));
        }
        if self.parallel.offload {
            recording.parameters.clear();
        }
    }

    /// Shrinks the states and temporaries of updates to shards, in the shards' type.
    fn shard_updates(&self, log: &mut Log, steps: [&Step; 2]) {
        let mut done = vec![false; log.allocations.len()];
        for step in steps {
            for event in &step.events[step.marks.after_backward..step.marks.after_optimizer] {
                let id = event.storage();
                if !event.is_alloc() || std::mem::replace(&mut done[id as usize], true) {
                    continue;
                }
                let allocation = log.allocations.own(id);
                if !allocation.shape.is_empty() {
                    allocation.dtype = self.own;
                    allocation.bytes = shard(&allocation.shape, self.parallel.world) * self.own.width();
                }
            }
        }
    }

    fn step(&self, log: &mut Log, streams: &mut Vec<(StorageId, u32)>, step: &Step) -> Step {
        let marks = &step.marks;
        let mut pass = Pass::new(self, log, streams);
        pass.events.extend(&step.events[..marks.before_forward]);
        let before_forward = pass.events.len();
        pass.forward(&step.events[marks.before_forward..marks.after_forward]);
        let after_forward = pass.events.len();
        pass.backward(&step.events[marks.after_forward..marks.after_backward]);
        let after_backward = pass.events.len();
        if !self.parallel.offload {
            pass.events
                .extend(&step.events[marks.after_backward..marks.after_optimizer]);
        }
        let after_optimizer = pass.events.len();
        pass.zero_grad(&step.events[marks.after_optimizer..]);
        Step {
            events: pass.events,
            marks: StepMarks {
                before_forward,
                after_forward,
                after_backward,
                after_optimizer,
            },
        }
    }
}

/// Forward and backward of one step, being rewritten.
struct Pass<'a> {
    sharded: &'a Sharded,
    log: &'a mut Log,
    events: Vec<Event>,
    /// Gathered parameters of each unit, while they are live.
    gathered: Vec<Vec<StorageId>>,
    /// Buffers that were prefetched and not copied out yet.
    ahead: Vec<Option<StorageId>>,
    /// Buffer that forward copied out last.
    copied: Option<StorageId>,
    /// Units in the order in which their forwards ended.
    order: Vec<Unit>,
    /// Whole gradients of each unit.
    gradients: Vec<Vec<StorageId>>,
    is_gradient: Vec<bool>,
    /// Input of the last reduce-scatter.
    reducing: Option<StorageId>,
    /// Shards of the gradients.
    reduced: Vec<StorageId>,
    /// Storages made on another stream than the model's.
    streams: &'a mut Vec<(StorageId, u32)>,
}

impl<'a> Pass<'a> {
    fn new(sharded: &'a Sharded, log: &'a mut Log, streams: &'a mut Vec<(StorageId, u32)>) -> Self {
        let units = sharded.units.count;
        Self {
            sharded,
            is_gradient: vec![false; log.allocations.len()],
            log,
            events: Vec::new(),
            gathered: vec![Vec::new(); units],
            ahead: vec![None; units],
            copied: None,
            order: Vec::new(),
            gradients: vec![Vec::new(); units],
            reducing: None,
            reduced: Vec::new(),
            streams,
        }
    }

    fn forward(&mut self, events: &[Event]) {
        self.enter_forward(ROOT);
        let mut now = ROOT;
        for &event in events {
            if let Some(unit) = self.unit_of(event).filter(|unit| *unit != now) {
                self.leave_forward(now);
                if unit != ROOT {
                    self.enter_forward(unit);
                }
                now = unit;
            }
            self.events.push(event);
        }
        self.leave_forward(now);
        if self.sharded.parallel.strategy == Strategy::Fsdp {
            self.give_up(ROOT);
        }
        self.order.push(ROOT);
        self.events.extend(self.copied.take().map(Event::free));
    }

    /// Ends a block's forward, freeing its parameters if the strategy reshards. The root's forward ends once, after all
    /// blocks.
    fn leave_forward(&mut self, unit: Unit) {
        if unit == ROOT {
            return;
        }
        if self.sharded.parallel.strategy == Strategy::Fsdp {
            self.give_up(unit);
        }
        self.order.push(unit);
    }

    fn enter_forward(&mut self, unit: Unit) {
        let buffer = self.gather(unit);
        self.events.extend(self.copied.take().map(Event::free));
        self.copy_out(unit);
        self.copied = Some(buffer);
    }

    fn backward(&mut self, events: &[Event]) {
        self.enter_backward(ROOT);
        let mut now = ROOT;
        for &event in events {
            if let Some(unit) = self.unit_of(event).filter(|unit| *unit != now) {
                self.leave_backward(now);
                if unit != ROOT {
                    self.enter_backward(unit);
                }
                now = unit;
            }
            self.events.push(event);
            self.note_gradient(event);
        }
        self.leave_backward(now);
        self.reduce(ROOT);
        for unit in 0..self.gathered.len() {
            self.give_up(unit);
            self.events.extend(self.ahead[unit].take().map(Event::free));
        }
        self.events.extend(self.reducing.take().map(Event::free));
    }

    fn leave_backward(&mut self, unit: Unit) {
        if unit != ROOT {
            self.reduce(unit);
        }
    }

    fn enter_backward(&mut self, unit: Unit) {
        if self.gathered[unit].is_empty() && !self.sharded.parameters[unit].is_empty() {
            let buffer = match self.ahead[unit].take() {
                Some(buffer) => buffer,
                None => self.gather(unit),
            };
            self.copy_out(unit);
            self.events.push(Event::free(buffer));
        }
        let at = self.order.iter().rposition(|&other| other == unit);
        if let Some(before) = at.and_then(|at| at.checked_sub(1)).map(|at| self.order[at]) {
            let is_there = !self.gathered[before].is_empty() || self.ahead[before].is_some();
            if !is_there && !self.sharded.parameters[before].is_empty() {
                self.ahead[before] = Some(self.gather(before));
            }
        }
    }

    /// Unit whose code makes a storage; a library's workspace belongs to none.
    fn unit_of(&self, event: Event) -> Option<Unit> {
        let allocation = &self.log.allocations[event.storage() as usize];
        let counts = event.is_alloc() && allocation.kind != Kind::Workspace;
        counts.then(|| self.sharded.units.unit(allocation.scope))
    }

    fn note_gradient(&mut self, event: Event) {
        let id = event.storage();
        let allocation = &self.log.allocations[id as usize];
        if event.is_alloc() && allocation.kind == Kind::Gradient {
            self.is_gradient[id as usize] = true;
            self.gradients[self.sharded.units.unit(allocation.scope)].push(id);
        }
    }

    /// Gathers a unit's parameters into one buffer, into which this GPU's own shards are copied first. Shards of
    /// another type, or in host memory, pass through a copy.
    fn gather(&mut self, unit: Unit) -> StorageId {
        let Sharded { parallel, own, .. } = *self.sharded;
        let parameters = &self.sharded.parameters[unit];
        let dtype = parameters.first().map_or(own, |p| p.dtype);
        let elements: u64 = parameters.iter().map(|p| p.shard).sum();
        let copies: Vec<u64> = if parallel.offload {
            parameters.iter().map(|p| p.shard).collect()
        } else if dtype != own {
            vec![elements]
        } else {
            Vec::new()
        };
        let copies: Vec<StorageId> = copies
            .into_iter()
            .map(|elements| self.temporary(elements, dtype, "copy of shards"))
            .collect();
        let buffer = self.temporary(elements * parallel.world, dtype, "all-gather buffer");
        self.streams
            .extend(copies.iter().chain([&buffer]).map(|&id| (id, GATHER)));
        self.events.extend(allocations(&copies));
        self.events.push(Event::alloc(buffer));
        self.events.extend(frees(&copies));
        buffer
    }

    fn temporary(&mut self, elements: u64, dtype: DType, name: &'static str) -> StorageId {
        let piece = Piece {
            elements,
            dtype,
            name,
            kind: Kind::Temporary,
            scope: 0,
        };
        piece.describe(self.log)
    }

    /// Copies a buffer into the unit's parameters.
    fn copy_out(&mut self, unit: Unit) {
        for p in &self.sharded.parameters[unit] {
            let whole = Piece {
                elements: p.shard * self.sharded.parallel.world,
                dtype: p.dtype,
                name: "gathered parameter",
                kind: Kind::Weight,
                scope: p.scope,
            };
            let id = whole.describe(self.log);
            self.events.push(Event::alloc(id));
            self.gathered[unit].push(id);
        }
    }

    fn give_up(&mut self, unit: Unit) {
        self.events.extend(self.gathered[unit].drain(..).map(Event::free));
    }

    /// Frees the unit's parameters and reduces its gradients.
    fn reduce(&mut self, unit: Unit) {
        self.give_up(unit);
        let gradients = std::mem::take(&mut self.gradients[unit]);
        let Some(&first) = gradients.first() else { return };
        let Sharded { parallel, own, .. } = *self.sharded;
        let whole = self.log.allocations[first as usize].dtype;
        let dtype = if parallel.mp { DType::F32 } else { whole };
        let shards: u64 = gradients
            .iter()
            .map(|&id| shard(&self.log.allocations[id as usize].shape, parallel.world))
            .sum();
        self.events.extend(self.reducing.take().map(Event::free));
        let input = self.temporary(shards * parallel.world, dtype, "reduce-scatter input");
        self.events.push(Event::alloc(input));
        self.events.extend(frees(&gradients));
        self.reducing = Some(input);
        let output = self.gradient_shards(shards, dtype, unit);
        self.events.push(Event::alloc(output));
        let output = if dtype == own {
            output
        } else {
            let cast = self.gradient_shards(shards, own, unit);
            self.events.extend([Event::alloc(cast), Event::free(output)]);
            cast
        };
        if parallel.offload {
            self.events.push(Event::free(output));
        } else {
            self.reduced.push(output);
        }
    }

    fn gradient_shards(&mut self, elements: u64, dtype: DType, unit: Unit) -> StorageId {
        let piece = Piece {
            elements,
            dtype,
            name: "shards of gradients",
            kind: Kind::Gradient,
            scope: self.sharded.parameters[unit].first().map_or(0, |p| p.scope),
        };
        let id = piece.describe(self.log);
        self.streams.push((id, REDUCE));
        id
    }

    /// Frees the shards of gradients instead of whole gradients.
    fn zero_grad(&mut self, events: &[Event]) {
        let reduced = std::mem::take(&mut self.reduced);
        self.events.extend(frees(&reduced));
        let whole = |event: &&Event| self.is_gradient[event.storage() as usize];
        let others: Vec<Event> = events.iter().filter(|event| !whole(event)).copied().collect();
        self.events.extend(others);
    }
}
