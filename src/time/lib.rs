//! The time of a training step: every kernel that the step launches, and the host that launches them.
//!
//! Two lines run beside each other. The host issues one operation after the other and does what lies between
//! them; the GPU works through what was issued. A kernel begins when it has been issued and the one before
//! it is done, so whichever line is slower decides. Nothing here is fitted to a step: kernels take what a
//! [`Measured`] file says of them, or what the card's data sheet allows; the host takes what was
//! measured of single operations ([`Pace`]).

mod answer;
mod attention;
mod bottleneck;
mod card;
mod clock;
pub mod communication;
mod cost;
mod expense;
mod feed;
mod interpolate;
mod kernels;
mod kinds;
mod measured;
mod network;
mod of_record;
mod pace;
pub mod pipeline;
mod rates;
mod roofline;
mod run;
mod several;
mod step;
mod tally;
#[cfg(test)]
mod tests;
mod timeline;

pub use answer::{Asked, CommunicationAnswer, DataAnswer, Estimate, Milliseconds, Part, Throughput, TimeAnswer};
pub use attention::elapsed;
pub use bottleneck::{Bottleneck, Resource};
pub use card::CardKernels;
pub use clock::{Clock, Origin};
pub use cost::Costs;
pub use expense::{Bill, Expense};
pub use feed::Feed;
pub use kernels::Kernels;
pub use measured::{H200, Measured, MeasuredError};
pub use network::{Collectives, Network};
pub use pace::Pace;
pub use rates::Rates;
pub use roofline::{Point, Roof};
pub use run::{Run, RunTime};
pub use several::{Together, Traffic, Way, collective, estimate_together};
pub use step::{Bound, Passes, Share, StepTime, estimate, seconds, step};
pub use timeline::{Phase, PhaseTime, span};
