//! What the tests across crates share: the measurements kept in `data/truth`, and how predictions
//! are held against them.

pub mod measured;
