//! Python's pickle format, data only: an opcode machine over flat arenas, which calls nothing.
//!
//! Protocols 0 to 5, as `pickletools` documents them. What would run code when Python loads it
//! (`REDUCE`, `GLOBAL`, `BUILD`, …) is refused by name. Time and memory are linear in the input: no
//! opcode stores more than a few words, an integer holds 128 bits, and a reader that walks the result
//! meets shared and cyclic lists as handles, never by recursion.
//!
//! ```
//! use vramscope_engine::diagnose::pickle::Pickle;
//!
//! let pickle = Pickle::read(b"\x80\x04}\x8c\x04size\x94M\x00\x02s.")?; // {'size': 512}
//! assert_eq!(pickle.root().get("size").and_then(|size| size.as_u64()), Some(512));
//! # Ok::<(), vramscope_engine::diagnose::pickle::PickleError>(())
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
    /// Whether the bytes begin as a pickle of protocol 2 or later does: with `PROTO`.
    pub fn is_one(bytes: &[u8]) -> bool {
        matches!(bytes, [0x80, 2..=5, ..])
    }

    /// Reads one pickle; what follows its `STOP` is not looked at.
    ///
    /// # Errors
    /// When an opcode is unknown, refused or cut, or the bytes are more than 4 GiB; the message names
    /// the opcode and where it stands.
    pub fn read(bytes: &'a [u8]) -> Result<Self, PickleError> {
        let (arena, root) = machine::run(bytes)?;
        Ok(Self { bytes, arena, root })
    }

    /// The value that was pickled.
    pub fn root(&self) -> Node<'_> {
        Node::new(self.bytes, &self.arena, self.root)
    }

    /// How many values its lists, tuples, sets and dictionaries hold together, each counted where it
    /// was put: what a reader may visit before it must have met something twice.
    pub fn len(&self) -> usize {
        self.arena.len()
    }

    /// Whether no container holds anything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests;
