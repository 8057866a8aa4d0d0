//! Shared test support: the measurements in `data/truth`, and their comparison with predictions.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

pub mod events;
pub mod kept;
pub mod ledger;
pub mod measured;
mod rows;

pub use rows::rows;
