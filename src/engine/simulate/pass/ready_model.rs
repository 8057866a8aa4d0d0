//! A model that is kept from one pass to the next.

use super::super::build::ModelSettings;
use super::super::steps::Trainer;
use super::ModelShare;
use crate::model::ModelConfig;
use crate::nn::Builder;
use crate::tape::{Ready, Tape};
use crate::{Model, Setup};

/// A model, and the tape on which it was made.
pub(super) struct ReadyModel {
    config: ModelConfig,
    settings: ModelSettings,
    place: ModelShare,
    pub tape: Tape,
    pub trainer: Trainer,
    /// State of the tape at which the model is ready to run.
    ready: Ready,
}

impl ReadyModel {
    /// Makes the model of a setup, in the state after its first forward.
    fn of(model: &Model, setup: &Setup, place: ModelShare) -> Self {
        let tape = super::tape(place, false);
        tape.settle();
        // The order of parameters does not matter, since no optimizer loops over them here.
        let (trainer, params) = Trainer::with(model, setup, &tape, Builder::made);
        drop(params);
        Self {
            config: model.config.clone(),
            settings: ModelSettings::of(model, setup),
            place,
            ready: tape.ready(),
            tape,
            trainer,
        }
    }

    /// Returns the kept model, reset for this setup, if it is the setup's model; otherwise makes a new one.
    pub fn switched_to(ready_model: Option<Self>, model: &Model, setup: &Setup, place: ModelShare) -> Self {
        match ready_model {
            Some(mut ready_model) if ready_model.is_of(model, setup, place) => {
                ready_model.trainer.turn_to(model, setup);
                ready_model.tape.rewind(&ready_model.ready);
                ready_model
            }
            _ => Self::of(model, setup, place),
        }
    }

    fn is_of(&self, model: &Model, setup: &Setup, place: ModelShare) -> bool {
        self.place == place && self.settings == ModelSettings::of(model, setup) && self.config == model.config
    }
}
