//! Newtypes of physical quantities, one per file, with only the operators that are meaningful.

mod bandwidth;
mod bytes;
mod flop_rate;
mod seconds;

pub use bandwidth::Bandwidth;
pub use bytes::Bytes;
pub use flop_rate::FlopRate;
pub use seconds::Seconds;
