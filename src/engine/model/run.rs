//! Run of a model: the settings that its forward needs.

use super::Model;
use super::forward::Run;
use super::libraries;
use crate::setup::Setup;

impl Run {
    /// Makes the forward's view of a setup.
    pub fn new(model: &Model, setup: &Setup) -> Self {
        let mut run = Self::of(setup, model.use_cache, model.config.family().support().main_inputs);
        run.take_images(&model.inputs_of_samples(setup));
        run.encode_first(setup.trainer.is_swift() && libraries::is_encoded_first(model.model_type));
        run
    }
}
