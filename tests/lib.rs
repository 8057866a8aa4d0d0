//! What the tests across crates share: the measurements kept in `data/truth`, and how predictions
//! are held against them.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

pub mod events;
pub mod kept;
pub mod measured;
