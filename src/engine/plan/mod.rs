//! What to change: how the need follows one entry of a setup, the largest value that fits, and what each
//! single change does.

mod axis;
mod change;
mod ladder;
mod largest;
mod max_batch;
mod recommend;
pub mod search;
mod speed;
mod sweep;
mod what_if;

pub use axis::Axis;
pub use change::Change;
pub use ladder::{Rung, ladder};
pub use largest::largest;
pub use max_batch::{MOST as MOST_SAMPLES, MaxBatch, max_batch};
pub use recommend::{Reason, Recommended, recommend};
pub use sweep::{Needed, Point, Sweep};
pub use what_if::{Effect, Now, Tried, WhatIf};
