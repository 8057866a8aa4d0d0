//! FSDP: parameters are cut into shards, gathered where a group of them runs, and their gradients summed into shards.

pub(super) mod flat;
pub(super) mod hooks;
pub(super) mod plan;
mod shards;
pub(super) mod types;

/// Streams whose memory the allocator keeps apart: that of the copy into a gather's buffer, and that of a
/// reduce-scatter.
const GATHER: u32 = 1;
const REDUCE: u32 = 2;
/// Number of the last stream of the model that is trained, behind which are those of the one that it is compared with.
const COMPARED: u32 = 2;
