//! Packs a value into eight bytes, since snapshots hold tens of millions of them.

/// A value in unpacked form; texts, wide integers and containers are references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unpacked {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of up to 60 bits.
    Int(i64),
    /// Index of an integer of up to 128 bits in the arena.
    Wide(u32),
    /// Index of a float in the arena.
    Float(u32),
    /// A short text, as a range of the input.
    Text {
        /// Offset in bytes.
        at: u32,
        /// Length in bytes, less than 2²⁷.
        len: u32,
    },
    /// Index of a long text in the arena.
    LongText(u32),
    /// Index of a list, tuple, set or dictionary in the arena.
    Container(u32),
}

/// [`Unpacked`] in eight bytes: a tag in the low four bits, the payload above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value(u64);

const TAG_BITS: u32 = 4;
/// Length from which a text no longer fits beside its 32-bit offset.
pub const LONG_TEXT: usize = 1 << 27;

impl Value {
    /// `None`.
    pub const NONE: Self = Self(0);

    /// An integer, if it fits into 60 bits.
    pub fn int(value: i64) -> Option<Self> {
        let shifted = value << TAG_BITS;
        (shifted >> TAG_BITS == value).then_some(Self(shifted as u64 | 2))
    }

    /// Packs a value; integers have their own constructor, [`Value::int`], as they may not fit.
    pub fn pack(unpacked: Unpacked) -> Self {
        let tagged = |tag: u64, payload: u64| Self(payload << TAG_BITS | tag);
        match unpacked {
            Unpacked::None => Self::NONE,
            Unpacked::Bool(value) => tagged(1, value.into()),
            Unpacked::Int(value) => Self((value << TAG_BITS) as u64 | 2),
            Unpacked::Wide(index) => tagged(3, index.into()),
            Unpacked::Float(index) => tagged(4, index.into()),
            Unpacked::Text { at, len } => tagged(5, u64::from(len) << 32 | u64::from(at)),
            Unpacked::LongText(index) => tagged(6, index.into()),
            Unpacked::Container(index) => tagged(7, index.into()),
        }
    }

    /// Unpacks the value.
    pub fn unpack(self) -> Unpacked {
        let payload = self.0 >> TAG_BITS;
        let index = payload as u32;
        match self.0 & ((1 << TAG_BITS) - 1) {
            1 => Unpacked::Bool(payload != 0),
            2 => Unpacked::Int(self.0 as i64 >> TAG_BITS),
            3 => Unpacked::Wide(index),
            4 => Unpacked::Float(index),
            5 => Unpacked::Text {
                at: index,
                len: (payload >> 32) as u32,
            },
            6 => Unpacked::LongText(index),
            7 => Unpacked::Container(index),
            _ => Unpacked::None,
        }
    }
}
