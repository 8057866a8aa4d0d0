//! Replays a recording's operations and frees on a tape, line by line (`docs/recording.md` describes the lines).

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::fault::Fault;
use super::kernels::{self, Call, NewMemory};
use super::limits::{MOST_STORAGE_BYTES, MOST_STORAGES};
use super::lines;
use super::marks::Marks;
use super::run::{Cue, Question};
use super::tables::{Tables, declared};
use super::value::{TensorRef, Value};
use super::work::Host;
use crate::names::Name;
use crate::tape::log::StorageId;
use crate::tape::work::HostOp;
use crate::tape::{Kind, Storage, Tape, Why};

/// The tape, with what the recording declared, and its storages by their ids in the file.
pub(super) struct TapeBuilder {
    pub tape: Tape,
    pub tables: Tables,
    pub marks: Marks,
    /// Calls of the script to the allocator, after this many events.
    pub cues: Vec<(usize, Cue)>,
    /// Storages allocated on a stream other than the default one.
    pub streams: Vec<(StorageId, u32)>,
    /// Operations whose internal memory is unknown, with the number of their calls.
    pub unknown: BTreeMap<Name, u64>,
    pub operations: u64,
    pub host: Host,
    storages: Vec<Slot>,
}

/// A storage that the recording names by an id, also after it is freed.
pub(super) struct Slot {
    /// Memory of the storage; `None` once it is freed.
    pub storage: Option<Storage>,
    /// The tape's id; `None` for a storage without memory.
    id: Option<StorageId>,
}

impl TapeBuilder {
    pub fn new(tape: Tape) -> Self {
        Self {
            tape,
            tables: Tables::default(),
            marks: Marks::default(),
            cues: Vec::new(),
            streams: Vec::new(),
            unknown: BTreeMap::new(),
            operations: 0,
            host: Host::default(),
            storages: Vec::new(),
        }
    }

    /// Returns the number of storages so far.
    fn storage_count(&self) -> u64 {
        self.storages.len() as u64
    }

    /// Returns the tape's id of a storage; `None` for one without memory.
    pub fn id_of(&self, storage: u64) -> Option<StorageId> {
        self.storages.get(usize::try_from(storage).ok()?)?.id
    }

    /// Replays a line `op`.
    pub fn operation(&mut self, line: &lines::Op<'_>) -> Result<(), Fault> {
        if line.varies() {
            return self.run(&line.at(&self.tables.numbers)?);
        }
        self.run(line)
    }

    /// Replays an operation none of whose arguments varies with the sizes.
    fn run(&mut self, line: &lines::Op<'_>) -> Result<(), Fault> {
        let name = *declared(&self.tables.operations, "function", line.function.number()?)?;
        let scope = self.tables.scope(line.module)?;
        let node = line
            .node
            .map(|node| declared(&self.tables.nodes, "node", node))
            .transpose()?;
        // Activations that checkpointing recomputes are not gradients.
        let gradient = line.autograd_thread == 1 && node.is_some_and(|node| !node.contains("Checkpoint"));
        self.tables.check_source_line(line.source_line)?;
        let fresh = self.new_memory(line)?;
        self.check(line, &fresh)?;
        let at = self.position();
        self.marks.operation(at, self.is_of_single_numbers(line));
        self.operations += 1;
        self.host.before(&self.tape, line);
        let mark = self.tape.work_mark();
        let storages_before = self.tape.storage_count();
        let call = Call::new(&self.tape, name, line, &self.tables, &self.storages, fresh);
        let known = self.tape.on_thread(line.autograd_thread == 1, line.stream, || {
            self.tape.in_scope(scope, || kernels::run(&call))
        });
        self.host.ran(mark, &call, (line, &self.tables), (gradient, scope));
        let made = call.into_made();
        if !known {
            *self.unknown.entry(kernels::short(name)).or_default() += 1;
        }
        for storage in made {
            let id = storage.id();
            self.storages.push(Slot {
                storage: Some(storage),
                id,
            });
        }
        let storages_after = self.tape.storage_count();
        if storages_after > MOST_STORAGES {
            return Err(Fault::TooMuch("storages"));
        }
        if line.stream != 0 {
            self.streams
                .extend((storages_before..storages_after).map(|id| (id as StorageId, line.stream)));
        }
        Ok(())
    }

    /// Returns the numbers of events and of work items so far.
    fn position(&self) -> (usize, usize) {
        (self.tape.mark(), self.tape.work_mark())
    }

    /// Replays a line `triton`.
    pub fn triton(&mut self, line: &lines::Triton<'_>) -> Result<(), Fault> {
        self.tables.scope(line.module)?;
        let name = self.tables.keep(&line.name)?;
        let at = self.position();
        self.marks.operation(at, false);
        self.host.triton(&self.tape, name, line, &self.tables);
        Ok(())
    }

    /// Returns the memory that an operation allocates, in the order of its results.
    fn new_memory(&self, line: &lines::Op<'_>) -> Result<Vec<NewMemory>, Fault> {
        if line.new_storages.is_empty() {
            return Ok(Vec::new());
        }
        let first = self.storage_count();
        let mut outputs: BTreeMap<u64, (usize, u32)> = BTreeMap::new();
        for (number, value) in line.outputs.iter().enumerate() {
            value.tensors(&mut |tensor: &TensorRef| {
                if let Some(storage) = tensor.storage {
                    outputs.entry(storage.into()).or_insert((number, tensor.meta));
                }
            });
        }
        let mut all = Vec::with_capacity(line.new_storages.len());
        for (offset, &(id, bytes)) in line.new_storages.iter().enumerate() {
            let bytes = bytes.at(&self.tables.numbers)?;
            let next = first + offset as u64;
            if id != next {
                return Err(Fault::OutOfOrder("storage", id, next));
            }
            if bytes > MOST_STORAGE_BYTES {
                return Err(Fault::TooMuch("bytes in a storage"));
            }
            let output = outputs.get(&id).copied();
            let layout = match output {
                Some((_, meta)) => Some(*declared(&self.tables.layouts, "meta", meta.into())?),
                None => None,
            };
            all.push(NewMemory {
                bytes,
                layout,
                output: output.map(|(number, _)| number),
            });
        }
        Ok(all)
    }

    /// Checks that everything an operation refers to exists.
    fn check(&self, line: &lines::Op<'_>, fresh: &[NewMemory]) -> Result<(), Fault> {
        let known = self.storage_count();
        let after = known + fresh.len() as u64;
        let mut fault = Ok(());
        let arguments = line.args.iter().chain(line.kwargs.values());
        for (value, end) in arguments
            .map(|v| (v, known))
            .chain(line.outputs.iter().map(|v| (v, after)))
        {
            value.tensors(&mut |tensor: &TensorRef| {
                if fault.is_ok() {
                    fault = self.check_tensor(tensor, known, end);
                }
            });
        }
        fault
    }

    fn check_tensor(&self, tensor: &TensorRef, known: u64, end: u64) -> Result<(), Fault> {
        declared(&self.tables.layouts, "meta", tensor.meta.into())?;
        let Some(storage) = tensor.storage else { return Ok(()) };
        let id = u64::from(storage);
        if id >= end {
            return Err(Fault::Undeclared("storage", id));
        }
        if id < known && self.storages[storage as usize].storage.is_none() {
            return Err(Fault::Freed(id));
        }
        Ok(())
    }

    /// Returns true if the operation reads and writes only single numbers, such as arithmetic on the loss.
    fn is_of_single_numbers(&self, line: &lines::Op<'_>) -> bool {
        let mut any = false;
        let mut all = true;
        for value in line.args.iter().chain(line.kwargs.values()).chain(&line.outputs) {
            value.tensors(&mut |tensor: &TensorRef| {
                any = true;
                let layout = self.tables.layouts.get(tensor.meta as usize);
                all &= layout.is_some_and(|layout| layout.shape.is_empty());
            });
        }
        any && all
    }

    /// Replays a line `free`.
    pub fn free(&mut self, line: &lines::Free) -> Result<(), Fault> {
        for &id in &line.storages {
            let slot = self.slot(id)?;
            if slot.storage.take().is_none() {
                return Err(Fault::Freed(id));
            }
        }
        Ok(())
    }

    fn slot(&mut self, id: u64) -> Result<&mut Slot, Fault> {
        let at = usize::try_from(id).ok();
        at.and_then(|at| self.storages.get_mut(at))
            .ok_or(Fault::Undeclared("storage", id))
    }

    /// Returns the memory of a live storage.
    fn live_storage(&self, id: u64) -> Result<&Storage, Fault> {
        let at = usize::try_from(id).ok();
        let slot = at.and_then(|at| self.storages.get(at));
        let slot = slot.ok_or(Fault::Undeclared("storage", id))?;
        slot.storage.as_ref().ok_or(Fault::Freed(id))
    }

    /// Replays a line `param`.
    pub fn param(&mut self, line: &lines::Param<'_>) -> Result<(), Fault> {
        let adapter = line.name.contains("lora_");
        let param = self.tables.param(line)?;
        let (name, scope, buffer) = (param.name, param.scope, param.buffer);
        // A parameter may lie on the host, and a tied one was declared before.
        let storage = self.live_storage(line.storage)?;
        let why = match (buffer, adapter) {
            (true, _) => Why::Buffer,
            (false, true) => Why::Adapter,
            (false, false) => Why::Parameter,
        };
        self.tape.rename(storage, name, scope);
        storage.classify(Kind::Weight, why);
        Ok(())
    }

    /// Replays a line `why`.
    pub fn why(&mut self, line: &lines::Why<'_>) -> Result<(), Fault> {
        let node = match line.node {
            Some(id) => Some(*declared(&self.tables.nodes, "node", id)?),
            None => None,
        };
        let named = match &line.name {
            Some(name) => Some(self.tables.keep(&Cow::Borrowed(&**name))?),
            None => None,
        };
        let scope = match line.param {
            Some(id) => Some(declared(&self.tables.params, "param", id)?.scope),
            None => None,
        };
        let storage = self.live_storage(line.storage)?;
        match (&*line.is, node) {
            ("saved", Some(node)) => storage.keep_for_backward(Why::NeededBy(node)),
            ("gradient", _) => {
                self.tape.host_op(HostOp::Accumulate(storage.id()));
                storage.classify(Kind::Gradient, Why::Gradient);
            }
            ("state", _) => {
                if let (Some(name), Some(scope)) = (named, scope) {
                    self.tape.rename(storage, name, scope);
                }
                let why = if named == Some("step") {
                    Why::StepCount
                } else {
                    Why::State
                };
                storage.classify(Kind::OptimizerState, why);
            }
            ("batch", _) => {
                let kind = self.tape.kind_of(storage).map(|(kind, _)| kind);
                if matches!(kind, Some(Kind::Temporary | Kind::Activation)) {
                    if let Some(name) = named {
                        self.tape.rename(storage, name, 0);
                    }
                    storage.classify(Kind::Input, Why::Batch);
                }
            }
            ("autocast", _) => storage.classify(Kind::Activation, Why::AutocastCopy),
            ("held", _) => {
                if let (true, Some(name)) = (self.is_temporary(storage), named) {
                    storage.classify(Kind::Temporary, Why::HeldBy(name));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn is_temporary(&self, storage: &Storage) -> bool {
        matches!(self.tape.kind_of(storage), Some((Kind::Temporary, _)))
    }

    /// Records a call of the script that queries or changes the allocator.
    pub fn cue(&mut self, cue: Cue) {
        let at = self.position();
        self.marks.settle(at);
        self.cues.push((at.0, cue));
    }

    /// Replays a line `ask`.
    pub fn ask(&mut self, line: &lines::Ask<'_>) {
        self.cue(Cue::Ask(Question::named(&line.what)));
    }

    /// Replays a line `mark`.
    pub fn mark(&mut self, line: &lines::Mark<'_>) -> Result<(), Fault> {
        if line.at == "backward" {
            self.tape.host_op(HostOp::Backward);
        }
        let at = self.position();
        if line.at == "optimizer" {
            self.marks.optimizer(line.name.as_deref());
        }
        self.marks.mark(&line.at, at)
    }
}

/// Value of an argument that was not given.
pub(super) const NOTHING: Value = Value::Null;
