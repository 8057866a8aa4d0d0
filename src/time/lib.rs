//! Estimates the time of a training step from every kernel it launches and the host that launches them.
//!
//! Host and GPU run side by side. The host issues one operation after the other, with its own work in between; the GPU
//! executes what was issued. A kernel starts once it has been issued and the kernel before it has finished, so the
//! slower side determines the time. Nothing is fitted to whole steps: kernel times come from a [`Measured`] file or the
//! card's data sheet, host times from measurements of single operations ([`Pace`]).

mod answer;
mod attention;
mod bottleneck;
mod card;
mod carry;
mod clock;
pub mod communication;
mod compared;
mod cost;
mod expense;
mod feed;
mod host;
mod interpolate;
mod interval;
mod kernels;
mod kinds;
mod measured;
mod milliseconds;
mod network;
mod of_record;
mod pace;
pub mod pipeline;
mod rates;
mod recorded;
mod resource;
mod roofline;
mod run;
mod several;
mod spread;
#[cfg(test)]
mod spreads_of_records;
mod step;
mod tally;
#[cfg(test)]
mod tests;
mod timeline;

pub use answer::{Asked, CommunicationAnswer, DataAnswer, Estimate, Part, Throughput, TimeAnswer};
pub use attention::elapsed;
pub use bottleneck::Bottleneck;
pub use card::CardKernels;
pub use clock::{Clock, Origin};
pub use cost::Costs;
pub use expense::{Bill, Expense};
pub use feed::Feed;
pub use kernels::Kernels;
pub use measured::{H200, Measured, MeasuredError};
pub use milliseconds::Milliseconds;
pub use network::{Collectives, Network};
pub use pace::Pace;
pub use rates::Rates;
pub use recorded::time_recorded;
pub use resource::Resource;
pub use roofline::{Point, Roof};
pub use run::{RunTime, TimedRun};
pub use several::{ParallelTime, Traffic, Way, collective, estimate_parallel};
pub use step::{Bound, Passes, Share, StepTime, estimate, seconds, step};
pub use timeline::{Phase, PhaseTime, span};
