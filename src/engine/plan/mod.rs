//! What to change: how the need follows one entry of a setup, and the largest value that fits.

mod axis;
mod largest;
mod sweep;

pub use axis::Axis;
pub use largest::largest;
pub use sweep::{Needed, Point, Sweep};
