//! Quantities. One newtype per file; only meaningful operators compile.

mod bytes;

pub use bytes::Bytes;
