//! One pass of a sharded model: units are gathered before they run, and their gradients reduced after.

use super::*;

/// Forward and backward of one step, being rewritten.
pub(super) struct Pass<'a> {
    sharded: &'a Sharded,
    log: &'a mut Log,
    pub(super) events: Vec<Event>,
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
    pub(super) fn new(sharded: &'a Sharded, log: &'a mut Log, streams: &'a mut Vec<(StorageId, u32)>) -> Self {
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

    pub(super) fn forward(&mut self, events: &[Event]) {
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

    pub(super) fn backward(&mut self, events: &[Event]) {
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
        let copies: Vec<u64> = if parallel.offload.is_any() {
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
        if parallel.offload.is_any() {
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
    pub(super) fn zero_grad(&mut self, events: &[Event]) {
        let reduced = std::mem::take(&mut self.reduced);
        self.events.extend(frees(&reduced));
        let whole = |event: &&Event| self.is_gradient[event.storage() as usize];
        let others: Vec<Event> = events.iter().filter(|event| !whole(event)).copied().collect();
        self.events.extend(others);
    }
}
