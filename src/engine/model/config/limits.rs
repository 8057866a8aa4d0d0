//! Largest values that a configuration may hold: far above any published model, low enough that
//! no product of sizes overflows 64 bits.

/// Entries of a vocabulary.
pub const VOCAB: u64 = 1 << 22;
/// Hidden, intermediate and projection widths, in elements.
pub const WIDTH: u64 = 1 << 18;
/// Layers of one stack.
pub const LAYERS: u64 = 1 << 10;
/// Attention heads.
pub const HEADS: u64 = 1 << 12;
/// Elements of one attention head.
pub const HEAD_DIM: u64 = 1 << 14;
/// Positions of text.
pub const POSITIONS: u64 = 1 << 27;
/// Pixels a side, of images and of patches.
pub const PIXELS: u64 = 1 << 14;
/// Patches a side that a pixel shuffle joins.
pub const SHUFFLE: u32 = 16;
/// Small counts: channels, tiles, frames, merge factors, query tokens.
pub const COUNT: u64 = 1 << 14;
