//! Access to a recorded operation's arguments and results.

use std::cell::RefCell;

use super::super::layout::Layout;
use super::super::limits::MOST_ELEMENTS;
use super::super::lines::Op;
use super::super::tables::Tables;
use super::super::tape_builder::{NOTHING, Slot};
use super::super::value::{TensorRef, Value};
use super::title;
use crate::dtype::DType;
use crate::names::Name;
use crate::tape::dims::Dims;
use crate::tape::{Storage, Tape, Tensor};

/// Memory that an operation allocates.
pub(in super::super) struct NewMemory {
    pub bytes: u64,
    /// Layout of the first result in this memory.
    pub layout: Option<Layout>,
    /// Position of that result.
    pub output: Option<usize>,
}

/// Recorded operation.
pub(in super::super) struct Call<'a> {
    pub tape: &'a Tape,
    pub name: Name,
    line: &'a Op<'a>,
    tables: &'a Tables,
    storages: &'a [Slot],
    new_memory: Vec<NewMemory>,
    made: RefCell<Vec<Option<Storage>>>,
}

impl<'a> Call<'a> {
    /// Wraps an operation that refers only to things that exist.
    pub fn new(
        tape: &'a Tape,
        name: Name,
        line: &'a Op<'a>,
        tables: &'a Tables,
        storages: &'a [Slot],
        new_memory: Vec<NewMemory>,
    ) -> Self {
        let made = RefCell::new(vec![None; new_memory.len()]);
        Self {
            tape,
            name,
            line,
            tables,
            storages,
            new_memory,
            made,
        }
    }

    /// Allocates the operation's results, in their order.
    pub fn make(&self) {
        self.make_in(&[]);
    }

    /// Allocates these results, then the others.
    pub fn make_in(&self, first: &[usize]) {
        self.make_only(first);
        let mut made = self.made.borrow_mut();
        for (new_memory, made) in self.new_memory.iter().zip(made.iter_mut()) {
            made.get_or_insert_with(|| self.allocate(new_memory));
        }
    }

    /// Allocates only these results, in this order.
    pub fn make_only(&self, outputs: &[usize]) {
        let mut made = self.made.borrow_mut();
        for output in outputs {
            let of = self.new_memory.iter().zip(made.iter_mut());
            for (new_memory, made) in of.filter(|(new_memory, _)| new_memory.output == Some(*output)) {
                made.get_or_insert_with(|| self.allocate(new_memory));
            }
        }
    }

    fn allocate(&self, new_memory: &NewMemory) -> Storage {
        let seen = match new_memory.layout {
            Some(layout) => (layout.shape, layout.dtype),
            None => (Dims::new(&[new_memory.bytes]), DType::U8),
        };
        self.tape.allocate_storage(new_memory.bytes, seen, title(self.name))
    }

    /// Returns the allocated storages, by number.
    pub fn into_made(self) -> Vec<Storage> {
        self.make();
        self.made.into_inner().into_iter().flatten().collect()
    }

    /// Returns an argument by position or name; null if it is not given.
    pub fn value(&self, at: usize, name: &str) -> &Value {
        let given = self.line.args.get(at).or_else(|| self.line.kwargs.get(name));
        given.unwrap_or(&NOTHING)
    }

    /// Returns a tensor argument on the GPU that has elements.
    pub fn tensor(&self, at: usize, name: &str) -> Option<Tensor> {
        match self.value(at, name) {
            Value::Tensor(tensor) => self.seen(tensor),
            _ => None,
        }
    }

    /// Returns a tensor argument on the GPU with elements and `dims` dimensions.
    pub fn tensor_of(&self, at: usize, name: &str, dims: usize) -> Option<Tensor> {
        self.tensor(at, name).filter(|tensor| tensor.dim() == dims)
    }

    /// Returns the tensor of a reference.
    pub fn seen(&self, tensor: &TensorRef) -> Option<Tensor> {
        let layout = self.layout(tensor)?;
        let slot = self.storages.get(tensor.storage? as usize)?;
        let seen = (layout.shape, layout.strides);
        let tensor = self.tape.view_of(slot.storage.as_ref()?, seen, layout.dtype);
        (tensor.numel() > 0).then_some(tensor)
    }

    /// Returns true if a tensor of these extents does not exceed the limits.
    pub fn fit(extents: &[u64]) -> bool {
        let all = extents.iter().try_fold(1u64, |all, &extent| all.checked_mul(extent));
        all.is_some_and(|all| all <= MOST_ELEMENTS)
    }

    /// Returns the layout of a tensor on the GPU or the host.
    pub fn layout(&self, tensor: &TensorRef) -> Option<&'a Layout> {
        self.tables.layouts.get(tensor.meta as usize)
    }

    /// Returns a result.
    pub fn result(&self, at: usize) -> Option<&'a Value> {
        self.line.outputs.get(at)
    }

    /// Returns the layout of a result.
    pub fn output(&self, at: usize) -> Option<&'a Layout> {
        match self.result(at)? {
            Value::Tensor(tensor) => self.layout(tensor),
            _ => None,
        }
    }

    /// Returns true if a result is requested.
    pub fn gives(&self, at: usize) -> bool {
        matches!(self.result(at), Some(Value::Tensor(_)))
    }

    /// Returns an integer argument.
    pub fn int(&self, at: usize, name: &str) -> Option<i64> {
        match self.value(at, name) {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns a number argument.
    pub fn number(&self, at: usize, name: &str) -> Option<f64> {
        match self.value(at, name) {
            Value::Int(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns a boolean argument; false if it is not given.
    pub fn is(&self, at: usize, name: &str) -> bool {
        *self.value(at, name) == Value::Bool(true)
    }

    /// Returns the integers of a list argument, or a single one as a list.
    pub fn ints(&self, at: usize, name: &str) -> Option<Vec<i64>> {
        match self.value(at, name) {
            Value::Int(value) => Some(vec![*value]),
            Value::List(all) => all
                .iter()
                .map(|value| match value {
                    Value::Int(value) => Some(*value),
                    _ => None,
                })
                .collect(),
            _ => None,
        }
    }
}
