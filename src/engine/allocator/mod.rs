//! PyTorch's caching allocator, exact.
//!
//! A simulator of `DeviceCachingAllocator` of PyTorch 2.11 (`c10/cuda/CUDACachingAllocator.cpp`):
//! the same requests in the same order give the same blocks, and so the same `allocated_bytes` and
//! `reserved_bytes`. The doc comments name the function of that file which each rule is from.
//!
//! ```
//! use vramscope_engine::allocator::{CachingAllocator, Options};
//!
//! let mut allocator = CachingAllocator::new(Options::default());
//! let block = allocator.alloc(1000, 0)?;
//! assert_eq!(allocator.allocated().get(), 1024); // rounded up to 512
//! assert_eq!(allocator.reserved().get(), 2 << 20); // one segment of the small pool
//! allocator.free(block);
//! assert_eq!(allocator.allocated().get(), 0);
//! # Ok::<(), vramscope_engine::allocator::OutOfMemory>(())
//! ```
//!
//! CUDA graphs' private pools are not simulated.

mod arena;
mod ascending_addresses;
mod bin;
mod bitmap;
mod caching;
mod chain;
mod driver_addresses;
mod error;
mod expandable;
mod free_blocks;
mod gaps;
mod options;
mod recorded_addresses;
mod release;
mod replay;
mod search;
mod segment_source;
mod shuffled_addresses;
mod size;
mod small_bins;
mod small_pools;
mod trace;
mod view;
mod xorshift;

pub use arena::BlockState;
pub use ascending_addresses::AscendingAddresses;
pub use caching::{Block, CachingAllocator};
pub use driver_addresses::DriverAddresses;
pub use error::OutOfMemory;
pub use options::{Options, RoundupDivisions};
pub use replay::{Replay, replay};
pub use segment_source::SegmentSource;
pub use shuffled_addresses::ShuffledAddresses;
pub use size::{
    LARGE_ROUNDING, LARGE_SEGMENT, MIN_BLOCK, MIN_LARGE_REQUEST, PoolKind, SMALL_SEGMENT, SMALL_SIZE, round_size,
    segment_size,
};
pub use trace::{Action, Event, Trace, TraceError};
pub use view::{BlockView, SegmentView};
pub(crate) use xorshift::Xorshift;
