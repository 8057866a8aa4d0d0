//! Views of values in a pickle.

use super::arena::{Arena, Shape};
use super::value::{Unpacked, Value};

/// A borrowed view of a value in a pickle; nothing is copied.
#[derive(Debug, Clone, Copy)]
pub struct Node<'p> {
    bytes: &'p [u8],
    arena: &'p Arena,
    value: Value,
}

impl<'p> Node<'p> {
    pub(super) fn new(bytes: &'p [u8], arena: &'p Arena, value: Value) -> Self {
        Self { bytes, arena, value }
    }

    fn with(self, value: Value) -> Self {
        Self { value, ..self }
    }

    /// An integer from 0 to 2⁶⁴ − 1.
    pub fn as_u64(self) -> Option<u64> {
        match self.value.unpack() {
            Unpacked::Int(value) => value.try_into().ok(),
            Unpacked::Wide(index) => self.arena.wide(index).try_into().ok(),
            _ => None,
        }
    }

    /// A float, or an integer converted to one.
    pub fn as_f64(self) -> Option<f64> {
        match self.value.unpack() {
            Unpacked::Float(index) => Some(self.arena.float_at(index)),
            Unpacked::Int(value) => Some(value as f64),
            _ => None,
        }
    }

    /// `True` or `False`.
    pub fn as_bool(self) -> Option<bool> {
        match self.value.unpack() {
            Unpacked::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// Identity of this list, tuple, set or dictionary; an object that occurs in two places has one identity.
    pub fn identity(self) -> Option<u32> {
        self.container(|_| true)
    }

    /// A text in UTF-8.
    pub fn as_str(self) -> Option<&'p str> {
        let (at, len) = match self.value.unpack() {
            Unpacked::Text { at, len } => (at as usize, len as usize),
            Unpacked::LongText(index) => self.arena.long_text(index),
            _ => return None,
        };
        str::from_utf8(self.bytes.get(at..at + len)?).ok()
    }

    /// The items of a list, tuple or set.
    pub fn items(self) -> Option<impl Iterator<Item = Node<'p>>> {
        let container = self.container(|shape| shape != Shape::Dict)?;
        Some(self.arena.items(container).map(move |value| self.with(value)))
    }

    /// Keys and values of a dictionary, in the order in which they were set. If keys repeat, the last one counts.
    pub fn entries(self) -> Option<impl Iterator<Item = (Node<'p>, Node<'p>)>> {
        let container = self.container(|shape| shape == Shape::Dict)?;
        let mut items = self.arena.items(container);
        Some(std::iter::from_fn(move || {
            let key = items.next()?;
            let value = items.next()?;
            Some((self.with(key), self.with(value)))
        }))
    }

    /// The layout of a dictionary that shares its keys with others. Dictionaries of one layout have equal keys in the
    /// same order.
    pub fn layout(self) -> Option<u32> {
        let container = self.container(|shape| shape == Shape::Dict)?;
        self.arena.record(container).map(|(layout, ..)| layout)
    }

    /// The value at an index of a dictionary that has a layout.
    pub fn at(self, place: usize) -> Option<Self> {
        let container = self.container(|shape| shape == Shape::Dict)?;
        let (.., values) = self.arena.record(container)?;
        values.get(place).map(|&value| self.with(value))
    }

    /// Returns true if both are the same text, number or container object.
    pub fn is(self, other: Self) -> bool {
        self.value == other.value
    }

    /// The value of a text key in a dictionary.
    pub fn get(self, key: &str) -> Option<Self> {
        let entries = self.entries()?;
        entries
            .filter(|(name, _)| name.as_str() == Some(key))
            .map(|(_, value)| value)
            .last()
    }

    fn container(self, wanted: impl Fn(Shape) -> bool) -> Option<u32> {
        match self.value.unpack() {
            Unpacked::Container(index) if wanted(self.arena.shape(index)) => Some(index),
            _ => None,
        }
    }
}
