//! What a run is held against.

use vramscope_engine::verdict::Room;

/// A card, or a limit of the allocator, with the name to show.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// What a person calls it.
    pub name: String,
    /// The memory it gives.
    pub room: Room,
}
