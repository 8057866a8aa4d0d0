//! Simulation of one GPU of several, in a chunk of its own that is loaded for such a run, and the answers about it.

use serde::{Deserialize, Serialize};
#[cfg(target_arch = "wasm32")]
use vramscope_engine::setup::Parallel;
use vramscope_engine::setup::Strategy;
use vramscope_engine::simulate::SimulateError;
#[cfg(target_arch = "wasm32")]
use vramscope_engine::{Model, Report, Setup, tape::Gpu};
use vramscope_plan::SimulateSeveral;

use super::protocol::Refusal;
use super::view::Summary;
use crate::state::Draft;

#[cfg(target_arch = "wasm32")]
static PROVIDED: std::sync::OnceLock<SimulateSeveral> = std::sync::OnceLock::new();

/// Makes the code that simulates a step available from now on.
pub fn provide(simulate: SimulateSeveral) {
    #[cfg(target_arch = "wasm32")]
    PROVIDED.set(simulate).ok();
    #[cfg(not(target_arch = "wasm32"))]
    let _ = simulate;
}

/// Simulates a step on one of several GPUs.
///
/// # Errors
/// Those of [`simulate_parallel`].
///
/// # Panics
/// When the code was not provided: the host fetches it before it runs such entries.
#[cfg(target_arch = "wasm32")]
pub fn simulate(model: &Model, setup: &Setup, parallel: &Parallel, gpu: Gpu) -> Result<Report, SimulateError> {
    let provided = PROVIDED.get().expect("the host fetches this code before it is used");
    provided(model, setup, parallel, gpu)
}

#[cfg(not(target_arch = "wasm32"))]
pub use vramscope_engine::simulate::simulate_parallel as simulate;

/// A strategy, and why a setup cannot take it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    /// The strategy.
    pub strategy: Strategy,
    /// Reason why it cannot be taken, if there is one.
    pub refusal: Option<SimulateError>,
}

/// A setup on a number of GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OnNumber {
    /// Number of GPUs.
    pub gpus: u64,
    /// The strategy, where it is another than the entered one.
    pub other: Option<Strategy>,
    /// Entries of that setup.
    pub entries: Draft,
    /// Figures of the GPU that is shown, or the reason for having none.
    pub found: Result<Summary, Refusal>,
}
