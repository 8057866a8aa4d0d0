//! One training step as eager PyTorch runs it: every tensor's birth, use and death.

mod kind;

pub use kind::{Component, Kind};
