//! Defines the kernels that `bench` measures: the bytes they move, their inputs, and their expected results.
//!
//! This module knows no GPU. A backend allocates the tensors of a [`work::Work`], fills the inputs as in [`random`],
//! and runs; [`reference::check`] then computes the same inputs again, element by element, and compares.

pub mod random;
pub mod reference;
pub mod suite;
pub mod work;
