//! Records of `vramscope bench` for exchange: validation and IDs.

mod checked;

#[cfg(feature = "server")]
pub use checked::Refused;
pub use checked::{Checked, hex};
