//! Stores the containers, wide integers, floats and long texts that a value refers to.

use std::collections::HashMap;

use super::error::Fault;
use super::value::{LONG_TEXT, Unpacked, Value};

/// Kind of a container.
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

/// A container whose items lie in runs, one for each opcode that added some. A dictionary filled at once with text keys
/// is a record: records with the same keys share one layout, and store only their values. Snapshots contain millions of
/// such dictionaries.
#[derive(Debug, Clone, Copy)]
pub struct Container {
    /// Kind of the container.
    pub shape: Shape,
    is_record: bool,
    /// Index of the first run; for a record, of its first item.
    first: u32,
    /// Index of the last run; for a record, of its layout.
    last: u32,
}

/// Largest number of keys of a record; a dictionary with more is stored like any other.
const MOST_KEYS: usize = 64;

/// A range of items that one opcode added.
#[derive(Debug, Clone, Copy)]
struct ItemRange {
    begin: u32,
    end: u32,
    next: u32,
}

const NO_RUN: u32 = u32::MAX;

/// Flat storage addressed by indices, so that a cyclic value is only a repeated index.
#[derive(Debug, Default)]
pub struct Arena {
    containers: Vec<Container>,
    runs: Vec<ItemRange>,
    items: Vec<Value>,
    /// Keys of records, by layout.
    layouts: Vec<Box<[Value]>>,
    layout_ids: HashMap<Box<[Value]>, u32>,
    /// Number of items added to containers, including keys of records.
    given: usize,
    wide: Vec<i128>,
    floats: Vec<f64>,
    long_texts: Vec<(u64, u64)>,
}

impl Arena {
    /// Number of items in all containers.
    pub fn len(&self) -> usize {
        self.given
    }

    /// Creates a container of these items and returns a handle to it.
    pub fn container(&mut self, shape: Shape, items: &[Value]) -> Result<Value, Fault> {
        let handle = handle(self.containers.len())?;
        self.containers.push(Container {
            shape,
            is_record: false,
            first: NO_RUN,
            last: NO_RUN,
        });
        self.add(handle, items)?;
        Ok(Value::pack(Unpacked::Container(handle)))
    }

    /// Appends items to a container.
    pub fn add(&mut self, container: u32, items: &[Value]) -> Result<(), Fault> {
        if items.is_empty() {
            return Ok(());
        }
        self.given += items.len();
        let Container {
            shape,
            is_record,
            first,
            ..
        } = self.containers[container as usize];
        if shape == Shape::Dict && first == NO_RUN && self.make_record(container, items)? {
            return Ok(());
        }
        if is_record {
            self.unmake_record(container)?;
        }
        self.append(container, items)
    }

    /// Stores an empty dictionary's first items as a record if they form one; returns true if it did.
    fn make_record(&mut self, container: u32, items: &[Value]) -> Result<bool, Fault> {
        let keys = || items.iter().copied().step_by(2);
        let is_text = |key: Value| matches!(key.unpack(), Unpacked::Text { .. });
        if items.len() > 2 * MOST_KEYS || !keys().all(is_text) {
            return Ok(false);
        }
        let layout = self.layout(keys())?;
        let begin = handle(self.items.len())?;
        handle(self.items.len() + items.len())?;
        self.items.extend(items.iter().skip(1).step_by(2));
        let made = &mut self.containers[container as usize];
        (made.is_record, made.first, made.last) = (true, begin, layout);
        Ok(true)
    }

    /// The layout of these keys, searched from the most recent one, which matches most often.
    fn layout(&mut self, keys: impl Iterator<Item = Value> + Clone) -> Result<u32, Fault> {
        let newest = self.layouts.len().saturating_sub(4);
        let recent = self.layouts[newest..]
            .iter()
            .rposition(|layout| layout.iter().copied().eq(keys.clone()));
        if let Some(at) = recent {
            return handle(newest + at);
        }
        let keys: Box<[Value]> = keys.collect();
        if let Some(&known) = self.layout_ids.get(&keys) {
            return Ok(known);
        }
        let id = handle(self.layouts.len())?;
        self.layouts.push(keys.clone());
        self.layout_ids.insert(keys, id);
        Ok(id)
    }

    /// Turns a record that gets more items into an ordinary dictionary.
    fn unmake_record(&mut self, container: u32) -> Result<(), Fault> {
        let items: Vec<Value> = self.items(container).collect();
        let made = &mut self.containers[container as usize];
        (made.is_record, made.first, made.last) = (false, NO_RUN, NO_RUN);
        self.append(container, &items)
    }

    fn append(&mut self, container: u32, items: &[Value]) -> Result<(), Fault> {
        let begin = handle(self.items.len())?;
        let end = handle(self.items.len() + items.len())?;
        self.items.extend_from_slice(items);
        let last = self.containers[container as usize].last;
        // Old protocols append one item at a time: the last run grows as long as no other items follow it.
        if let Some(run) = self.runs.get_mut(last as usize).filter(|run| run.end == begin) {
            run.end = end;
            return Ok(());
        }
        let new = handle(self.runs.len())?;
        self.runs.push(ItemRange {
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

    /// Kind of a container.
    pub fn shape(&self, container: u32) -> Shape {
        self.containers[container as usize].shape
    }

    /// The items of a container, in order.
    pub fn items(&self, container: u32) -> impl Iterator<Item = Value> + '_ {
        let (keys, values) = self
            .record(container)
            .map_or((&[][..], &[][..]), |(_, keys, values)| (keys, values));
        let in_record = keys.iter().zip(values).flat_map(|(key, value)| [*key, *value]);
        let Container { is_record, first, .. } = self.containers[container as usize];
        let first = if is_record { NO_RUN } else { first };
        let in_runs = std::iter::successors(self.runs.get(first as usize), |run| self.runs.get(run.next as usize))
            .flat_map(|run| &self.items[run.begin as usize..run.end as usize])
            .copied();
        in_record.chain(in_runs)
    }

    /// Layout, keys and values of a record; `None` for any other container.
    pub fn record(&self, container: u32) -> Option<(u32, &[Value], &[Value])> {
        let Container {
            is_record,
            first,
            last: layout,
            ..
        } = self.containers[container as usize];
        let keys = self.layouts.get(layout as usize).filter(|_| is_record)?;
        let begin = first as usize;
        Some((layout, keys, self.items.get(begin..begin + keys.len())?))
    }

    /// Stores an integer of up to 128 bits.
    pub fn integer(&mut self, value: i128) -> Result<Value, Fault> {
        if let Some(small) = i64::try_from(value).ok().and_then(Value::int) {
            return Ok(small);
        }
        self.wide.push(value);
        Ok(Value::pack(Unpacked::Wide(handle(self.wide.len() - 1)?)))
    }

    /// Stores a float.
    pub fn float(&mut self, value: f64) -> Result<Value, Fault> {
        self.floats.push(value);
        Ok(Value::pack(Unpacked::Float(handle(self.floats.len() - 1)?)))
    }

    /// Stores a text or bytes as offset and length in the input.
    pub fn text(&mut self, at: usize, len: usize) -> Result<Value, Fault> {
        match u32::try_from(at) {
            Ok(at) if len < LONG_TEXT => Ok(Value::pack(Unpacked::Text { at, len: len as u32 })),
            _ => {
                self.long_texts.push((at as u64, len as u64));
                Ok(Value::pack(Unpacked::LongText(handle(self.long_texts.len() - 1)?)))
            }
        }
    }

    /// The integer at an index.
    pub fn wide(&self, index: u32) -> i128 {
        self.wide[index as usize]
    }

    /// The float at an index.
    pub fn float_at(&self, index: u32) -> f64 {
        self.floats[index as usize]
    }

    /// Offset and length of a long text.
    pub fn long_text(&self, index: u32) -> (usize, usize) {
        let (at, len) = self.long_texts[index as usize];
        (at as usize, len as usize)
    }
}

/// Converts an index to a handle. The largest `u32` is reserved as an end marker.
fn handle(index: usize) -> Result<u32, Fault> {
    match u32::try_from(index) {
        Ok(handle) if handle != NO_RUN => Ok(handle),
        _ => Err(Fault::TooLarge),
    }
}
