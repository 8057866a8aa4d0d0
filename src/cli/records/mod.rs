//! Records of `vramscope bench` on their way to other people: what they are known by, and what a list
//! says of them.

mod checked;
mod entry;

pub use checked::{Checked, Refused, hex};
pub use entry::Entry;
