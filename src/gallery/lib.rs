//! Recordings of the gallery, as they are published.
//!
//! A recording numbers its storages upwards (`docs/recording.md`), so the same layer reads otherwise each time that it
//! runs, and gzip finds little that repeats. [`pack`] writes numbers as differences: a layer then reads as the layer
//! before, and the file shrinks to a fifth. [`unpack`] gives the very bytes of the recording back.
//!
//! ```
//! let recording = b"{\"t\":\"op\",\"f\":3,\"a\":[\"#2:1\",\"#15:7\"],\"o\":[\"#16:9\"],\"n\":[[16,64]],\"mod\":4}\n";
//! let packed = vramscope_gallery::pack(recording).unwrap();
//! assert!(vramscope_gallery::is_packed(&packed));
//! assert_eq!(vramscope_gallery::unpack(&packed, 1 << 20).unwrap(), recording);
//! ```

mod chains;
mod lines;
mod packing;
mod unpacking;

pub use packing::pack;
pub use unpacking::{Damaged, unpack};

/// The first line of a packed recording.
const FIRST: &[u8] = b"vramscope-gallery 1\n";

/// True if the bytes begin as a packed recording does.
pub fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(FIRST)
}
