//! Where everything lives that a value does not hold itself.

use super::error::Fault;
use super::value::{LONG_TEXT, Unpacked, Value};

/// What a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `list`.
    List,
    /// `tuple`.
    Tuple,
    /// `set` or `frozenset`.
    Set,
    /// `dict`: its items are keys and values in turn.
    Dict,
}

/// A container's items lie in runs, one for each opcode that added some.
#[derive(Debug, Clone, Copy)]
pub struct Container {
    /// What it is.
    pub shape: Shape,
    first: u32,
    last: u32,
}

/// Items that were added together.
#[derive(Debug, Clone, Copy)]
struct Run {
    begin: u32,
    end: u32,
    next: u32,
}

const NO_RUN: u32 = u32::MAX;

/// Flat storage: handles are indices, so that a cycle is only a number.
#[derive(Debug, Default)]
pub struct Arena {
    containers: Vec<Container>,
    runs: Vec<Run>,
    items: Vec<Value>,
    wide: Vec<i128>,
    floats: Vec<f64>,
    long_texts: Vec<(u64, u64)>,
}

impl Arena {
    /// How many items the containers hold together.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// A new container of these items.
    pub fn container(&mut self, shape: Shape, items: &[Value]) -> Result<Value, Fault> {
        let handle = handle(self.containers.len())?;
        self.containers.push(Container {
            shape,
            first: NO_RUN,
            last: NO_RUN,
        });
        self.add(handle, items)?;
        Ok(Value::pack(Unpacked::Container(handle)))
    }

    /// Adds items at the end of a container.
    pub fn add(&mut self, container: u32, items: &[Value]) -> Result<(), Fault> {
        if items.is_empty() {
            return Ok(());
        }
        let begin = handle(self.items.len())?;
        let end = handle(self.items.len() + items.len())?;
        self.items.extend_from_slice(items);
        let last = self.containers[container as usize].last;
        // One by one, as old protocols append, the last run grows as long as nothing came between.
        if let Some(run) = self.runs.get_mut(last as usize).filter(|run| run.end == begin) {
            run.end = end;
            return Ok(());
        }
        let new = handle(self.runs.len())?;
        self.runs.push(Run {
            begin,
            end,
            next: NO_RUN,
        });
        match self.runs.get_mut(last as usize) {
            Some(run) => run.next = new,
            None => self.containers[container as usize].first = new,
        }
        self.containers[container as usize].last = new;
        Ok(())
    }

    /// What a container is.
    pub fn shape(&self, container: u32) -> Shape {
        self.containers[container as usize].shape
    }

    /// The items of a container, in order.
    pub fn items(&self, container: u32) -> impl Iterator<Item = Value> + '_ {
        let first = self.containers[container as usize].first;
        std::iter::successors(self.runs.get(first as usize), |run| self.runs.get(run.next as usize))
            .flat_map(|run| &self.items[run.begin as usize..run.end as usize])
            .copied()
    }

    /// An integer of any width up to 128 bits.
    pub fn integer(&mut self, value: i128) -> Result<Value, Fault> {
        if let Some(small) = i64::try_from(value).ok().and_then(Value::int) {
            return Ok(small);
        }
        self.wide.push(value);
        Ok(Value::pack(Unpacked::Wide(handle(self.wide.len() - 1)?)))
    }

    /// A float.
    pub fn float(&mut self, value: f64) -> Result<Value, Fault> {
        self.floats.push(value);
        Ok(Value::pack(Unpacked::Float(handle(self.floats.len() - 1)?)))
    }

    /// A text or bytes, by where it stands in the input.
    pub fn text(&mut self, at: usize, len: usize) -> Result<Value, Fault> {
        match u32::try_from(at) {
            Ok(at) if len < LONG_TEXT => Ok(Value::pack(Unpacked::Text { at, len: len as u32 })),
            _ => {
                self.long_texts.push((at as u64, len as u64));
                Ok(Value::pack(Unpacked::LongText(handle(self.long_texts.len() - 1)?)))
            }
        }
    }

    /// The integer behind a handle.
    pub fn wide(&self, index: u32) -> i128 {
        self.wide[index as usize]
    }

    /// The float behind a handle.
    pub fn float_at(&self, index: u32) -> f64 {
        self.floats[index as usize]
    }

    /// Offset and length of a long text.
    pub fn long_text(&self, index: u32) -> (usize, usize) {
        let (at, len) = self.long_texts[index as usize];
        (at as usize, len as usize)
    }
}

/// An index as a handle; one below the largest, which marks an end.
fn handle(index: usize) -> Result<u32, Fault> {
    match u32::try_from(index) {
        Ok(handle) if handle != NO_RUN => Ok(handle),
        _ => Err(Fault::TooLarge),
    }
}
