//! Run of a model: the settings that its forward needs.

use super::Model;
use super::forward::Run;
use crate::setup::Setup;

impl Run {
    /// Makes the forward's view of a setup.
    pub fn new(model: &Model, setup: &Setup) -> Self {
        Self::of(setup, model.use_cache, model.config.family().support().main_inputs)
    }
}
