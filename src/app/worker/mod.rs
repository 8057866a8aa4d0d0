//! Runs the engine off the page's thread, in a worker that loads the same WebAssembly.
//!
//! The page asks through [`Engine`]; the [`Host`](host::Host) answers in slices, so that a newer question or a
//! cancellation can take effect between two simulations. [`protocol`] defines the messages. If the browser blocks
//! workers, the same host runs on the page's own thread. A worker that crashed, or that is inside a long simulation
//! nobody needs any more, is replaced.

pub mod around;
pub mod attention;
pub mod batches;
#[cfg(target_arch = "wasm32")]
mod client;
mod clocks;
mod coded;
pub mod costs;
pub mod difference;
mod export;
mod host;
pub mod launch;
pub mod launched;
pub mod lazy;
#[cfg(target_arch = "wasm32")]
mod link;
#[cfg(test)]
mod places;
pub mod plans;
mod played;
mod prefetch;
pub mod protocol;
#[cfg(target_arch = "wasm32")]
mod pump;
pub mod recorded;
pub(crate) mod run;
#[cfg(target_arch = "wasm32")]
pub mod scope;
mod setups;
pub mod several;
mod shared_step;
pub mod slices;
pub mod sweep;
mod time;
pub mod timing;
pub mod view;
mod what_if;
#[cfg(target_arch = "wasm32")]
mod wire;

#[cfg(target_arch = "wasm32")]
pub use client::Engine;
pub use coded::Coded;
pub use export::Export;
#[cfg(target_arch = "wasm32")]
pub use played::{Replayer, replayer};
pub use protocol::{Answer, Ask, Progress, Refusal, Slot, Tested, TimeEntries};
pub use run::model;
#[cfg(test)]
pub use setups::summary;
#[cfg(target_arch = "wasm32")]
pub use time::begin as begin_time;
