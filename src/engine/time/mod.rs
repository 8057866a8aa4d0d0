//! The time of a training step: every kernel that the step launches, and the host that launches them.
//!
//! Two lines run beside each other. The host issues one operation after the other and does what lies between
//! them; the GPU works through what was issued. A kernel begins when it has been issued and the one before
//! it is done, so whichever line is slower decides. Nothing here is fitted to a step: kernels take what a
//! [`Measured`] file says of them, or what the card's data sheet allows; the host takes what was
//! measured of single operations ([`Pace`]).

mod answer;
pub mod communication;
mod cost;
mod interpolate;
mod kernels;
mod kinds;
mod measured;
mod of_record;
mod pace;
pub mod pipeline;
mod rates;
mod step;
#[cfg(test)]
mod tests;
mod timeline;

pub use answer::{Milliseconds, Part, TimeAnswer};
pub use cost::Costs;
pub use kernels::Kernels;
pub use measured::{H200, Measured, MeasuredError};
pub use pace::Pace;
pub use rates::Rates;
pub use step::{Bound, Share, StepTime, estimate, step};
pub use timeline::{Phase, PhaseTime, span};
