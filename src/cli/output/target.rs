//! The memory with which a run is compared.

use vramscope_engine::device::Device;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Room;

/// A card, or a limit on the memory that the allocator may reserve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// A whole card.
    Card(&'static Device),
    /// A limit of the allocator.
    Limit(Bytes),
}

impl Target {
    /// Name for people.
    pub fn name(&self) -> &str {
        self.room().name()
    }

    /// The memory that it provides.
    pub const fn room(&self) -> Room<'static> {
        match *self {
            Self::Card(device) => Room::Card(device),
            Self::Limit(bytes) => Room::Allocator(bytes),
        }
    }
}
