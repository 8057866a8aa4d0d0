//! Checks if a model can batch samples of different lengths.

use super::SimulateError;
use crate::setup::Attention;
use crate::{Model, Setup};

/// Refuses lengths for models without text, and batches of lengths that are not simulated.
pub(super) fn check(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.lengths.is_empty() {
        return Ok(());
    }
    let name = || model.name.clone();
    if !model.takes().text {
        return Err(SimulateError::NoText { model: name() });
    }
    if setup.lengths.contains(&0) {
        return Err(SimulateError::EmptySample);
    }
    let ragged = setup.is_packed() || setup.is_padded();
    if ragged && setup.attn == Attention::FlashAttention2 {
        return Err(SimulateError::RaggedFlash);
    }
    if ragged && !model.config.family().batches_ragged() {
        return Err(SimulateError::RaggedUnknown { model: name() });
    }
    if setup.is_packed() && model.takes().parts {
        return Err(SimulateError::PackedImages { model: name() });
    }
    if setup.is_packed() && setup.use_cache.unwrap_or(model.use_cache) {
        return Err(SimulateError::PackedCache);
    }
    Ok(())
}
