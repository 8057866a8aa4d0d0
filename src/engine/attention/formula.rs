//! Products of named extents, which yield the formula, its numbers and its value.

use super::call::{Algorithm, Call};
use crate::order::sort_by_key;
use crate::tape::dims::Dims;

/// A named quantity of a formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symbol {
    /// Samples.
    Batch,
    /// Query heads.
    Heads,
    /// Key and value heads.
    KvHeads,
    /// Length.
    Length,
    /// Elements of one head.
    Width,
    /// Window.
    Window,
    /// Half a window.
    HalfWindow,
    /// A window and a half.
    WindowAndHalf,
    /// Keys that a query keeps.
    Kept,
    /// Queries of a chunk.
    Chunk,
    /// Pairs of a query and a key, in one head.
    Pairs,
    /// Keys read, in one head: once for each block of queries that sees them.
    KeysRead,
    /// Blocks of queries.
    Blocks,
}

impl Symbol {
    /// The letter in a formula.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Batch => "B",
            Self::Heads => "H",
            Self::KvHeads => "G",
            Self::Length => "L",
            Self::Width => "D",
            Self::Window => "W",
            Self::HalfWindow => "½W",
            Self::WindowAndHalf => "1½W",
            Self::Kept => "K",
            Self::Chunk => "C",
            Self::Pairs => "P",
            Self::KeysRead => "R",
            Self::Blocks => "N",
        }
    }
}

/// One factor of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Factor {
    /// Name of the factor; `None` for a plain number.
    pub symbol: Option<Symbol>,
    /// Value of the factor.
    pub value: u64,
    /// Exponent of the factor.
    pub power: u8,
}

/// A product of factors.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Product(Vec<Factor>);

impl Product {
    /// Makes the product of these factors, equal ones merged, numbers first.
    pub fn of(factors: impl IntoIterator<Item = (Option<Symbol>, u64)>) -> Self {
        let mut out: Vec<Factor> = Vec::new();
        for (symbol, value) in factors {
            match out
                .iter_mut()
                .find(|f| (f.symbol, f.value) == (symbol, value) && symbol.is_some())
            {
                Some(known) => known.power += 1,
                None => out.push(Factor {
                    symbol,
                    value,
                    power: 1,
                }),
            }
        }
        sort_by_key(&mut out, |factor| *factor);
        Self(out)
    }

    /// The factors, in order.
    pub fn factors(&self) -> &[Factor] {
        &self.0
    }

    /// Value of the product, which may exceed 64 bits.
    pub fn value(&self) -> f64 {
        let power = |f: &Factor| (0..f.power).map(|_| f.value as f64).product::<f64>();
        self.0.iter().map(power).product()
    }

    /// The product in letters, such as `4·B·H·L²`.
    pub fn letters(&self) -> String {
        self.join(|f| match f.symbol {
            Some(symbol) => symbol.letter().to_owned(),
            None => f.value.to_string(),
        })
    }

    /// The product in numbers, such as `4·1·16·2048²`.
    pub fn numbers(&self) -> String {
        self.join(|f| f.value.to_string())
    }

    fn join(&self, word: impl Fn(&Factor) -> String) -> String {
        let power = |n: u8| match n {
            1 => "",
            2 => "²",
            3 => "³",
            _ => "⁴",
        };
        let words: Vec<String> = self.0.iter().map(|f| word(f) + power(f.power)).collect();
        if words.is_empty() {
            return "1".into();
        }
        words.join("·")
    }
}

/// Names the extents of tensors of one call.
pub(super) struct Namer<'a> {
    pub call: &'a Call,
    pub algorithm: Algorithm,
    pub length: u64,
}

impl Namer<'_> {
    /// Writes a shape as a product. `wide` is true if the last extent is keys rather than elements, for calls where
    /// both have one value.
    pub fn product(&self, shape: &Dims, wide: bool) -> Product {
        let mut factors = Vec::new();
        if shape.numel() == 1 {
            return Product::default();
        }
        for (i, &extent) in shape.iter().enumerate() {
            let from_end = shape.len() - i;
            match from_end {
                1 => factors.push(self.column(extent, wide)),
                2 => factors.push(self.row(extent)),
                _ => self.lead(extent, &mut factors),
            }
        }
        Product::of(
            factors
                .into_iter()
                .filter(|(symbol, value)| symbol.is_some() || *value != 1),
        )
    }

    fn column(&self, extent: u64, wide: bool) -> (Option<Symbol>, u64) {
        let width = (extent == self.call.width && !wide).then_some(Symbol::Width);
        let name = width.or_else(|| self.positions(extent));
        let late = || (extent == self.call.width).then_some(Symbol::Width);
        (name.or_else(late), extent)
    }

    fn row(&self, extent: u64) -> (Option<Symbol>, u64) {
        let heads = || (extent == self.call.heads).then_some(Symbol::Heads);
        (self.positions(extent).or_else(heads), extent)
    }

    fn positions(&self, extent: u64) -> Option<Symbol> {
        let call = self.call;
        let mut known = vec![(Symbol::Length, self.length)];
        match self.algorithm {
            Algorithm::Sliding => known.extend([
                (Symbol::HalfWindow, call.half_window()),
                (Symbol::Window, 2 * call.half_window()),
                (Symbol::WindowAndHalf, 3 * call.half_window()),
            ]),
            Algorithm::Chunked => known.push((Symbol::Chunk, call.chunk)),
            Algorithm::TopK => known.push((Symbol::Kept, call.kept(self.length))),
            _ => {}
        }
        known
            .into_iter()
            .find(|(_, value)| *value == extent)
            .map(|(name, _)| name)
    }

    fn lead(&self, extent: u64, factors: &mut Vec<(Option<Symbol>, u64)>) {
        let call = self.call;
        let named = factors.is_empty();
        if named && extent == call.batch * call.heads && (call.batch > 1 || extent != call.batch) {
            factors.extend([(Some(Symbol::Batch), call.batch), (Some(Symbol::Heads), call.heads)]);
        } else if named && extent == call.batch {
            factors.push((Some(Symbol::Batch), extent));
        } else if extent == call.heads {
            factors.push((Some(Symbol::Heads), extent));
        } else if extent == call.kv_heads {
            factors.push((Some(Symbol::KvHeads), extent));
        } else {
            let position = self.positions(extent);
            factors.push((position, extent));
        }
    }
}
