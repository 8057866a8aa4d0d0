//! VRAMscope's engine: one training step of a vision-language model, simulated byte by byte.
//!
//! Data flows one way: [`model::Model`] + [`setup::Setup`] + [`device::Device`] → [`tape`] →
//! [`allocator`] → [`report::Report`]. Pure: no I/O, no clock, no threads, no printing; the same
//! input gives the same bytes natively and in WebAssembly.
//!
//! [`Simulation`] is where to begin: its example goes through all of it.

pub mod allocator;
pub mod attention;
pub mod device;
pub mod dtype;
pub mod format;
pub mod model;
mod names;
pub mod nn;
pub mod optim;
pub mod order;
pub mod python_json;
pub mod recording;
pub mod report;
pub mod setup;
pub mod simulate;
pub mod suggest;
pub mod tape;
pub mod units;

pub use model::{Case, Model};
pub use report::{Report, verdict};
pub use setup::Setup;
pub use simulate::{SimulateError, Simulation, simulate, simulate_on};
