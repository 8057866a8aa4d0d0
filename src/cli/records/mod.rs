//! Records of `vramscope bench` on their way to other people: what they are known by.

mod checked;

#[cfg(feature = "server")]
pub use checked::Refused;
pub use checked::{Checked, hex};
