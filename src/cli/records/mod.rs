//! Records of `vramscope bench` on their way to other people: what they are known by, and what a list
//! says of them.

mod checked;
mod entry;

#[cfg(feature = "server")]
pub use checked::Refused;
pub use checked::{Checked, hex};
pub use entry::Entry;
