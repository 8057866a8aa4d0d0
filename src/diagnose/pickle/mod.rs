//! Reads Python's pickle format as data only: an opcode machine over flat arenas that never calls anything.
//!
//! Supports protocols 0 to 5, as `pickletools` documents them. Opcodes that would run code when Python loads them
//! (`REDUCE`, `GLOBAL`, `BUILD`, …) are refused by name. Time and memory are linear in the input: no opcode stores more
//! than a few words, an integer has at most 128 bits, and a reader that walks the result sees shared and cyclic lists
//! as handles, so it needs no recursion.
//!
//! ```
//! use vramscope_diagnose::pickle::Pickle;
//!
//! let pickle = Pickle::read(b"\x80\x04}\x8c\x04size\x94M\x00\x02s.")?; // {'size': 512}
//! assert_eq!(pickle.root().get("size").and_then(|size| size.as_u64()), Some(512));
//! # Ok::<(), vramscope_diagnose::pickle::PickleError>(())
//! ```

mod arena;
mod error;
mod input;
mod machine;
mod node;
mod opcode;
mod value;

pub use error::PickleError;
pub use node::Node;

use arena::Arena;
use value::Value;

/// An unpickled value that borrows its texts from the input.
#[derive(Debug)]
pub struct Pickle<'a> {
    bytes: &'a [u8],
    arena: Arena,
    root: Value,
}

impl<'a> Pickle<'a> {
    /// Returns true if the bytes begin like a pickle of protocol 2 or later: with `PROTO`.
    pub fn is_one(bytes: &[u8]) -> bool {
        matches!(bytes, [0x80, 2..=5, ..])
    }

    /// Reads one pickle; bytes after its `STOP` are ignored.
    ///
    /// # Errors
    /// If an opcode is unknown, refused or cut off, or the input is larger than 4 GiB; the error names the opcode and
    /// its offset.
    pub fn read(bytes: &'a [u8]) -> Result<Self, PickleError> {
        let (arena, root) = machine::run(bytes)?;
        Ok(Self { bytes, arena, root })
    }

    /// The value that was pickled.
    pub fn root(&self) -> Node<'_> {
        Node::new(self.bytes, &self.arena, self.root)
    }

    /// Number of items in all lists, tuples, sets and dictionaries, each counted where it was added. A reader that
    /// visits more items than this has met one of them twice.
    pub fn len(&self) -> usize {
        self.arena.len()
    }

    /// Returns true if no container has an item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests;
