//! The kernels that `bench` measures: what each moves, what it is given, what it must give.
//!
//! Nothing here knows a GPU. A backend allocates the tensors of a [`work::Work`], fills the inputs as
//! [`random`] says, and runs; [`reference::check`] then draws the same inputs again, place by place, and
//! compares.

pub mod random;
pub mod reference;
pub mod suite;
pub mod work;
