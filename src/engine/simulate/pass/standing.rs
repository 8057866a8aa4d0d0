//! A model that is kept from one pass to the next.

use super::super::build::Making;
use super::super::steps::Trainer;
use super::Place;
use crate::model::ModelConfig;
use crate::nn::Builder;
use crate::tape::{Ready, Tape};
use crate::{Model, Setup};

/// A model, and the tape on which it was made.
pub(super) struct Standing {
    config: ModelConfig,
    making: Making,
    place: Place,
    pub tape: Tape,
    pub trainer: Trainer,
    /// State of the tape at which the model is ready to run.
    ready: Ready,
}

impl Standing {
    /// Makes the model of a setup, in the state after its first forward.
    fn of(model: &Model, setup: &Setup, place: Place) -> Self {
        let tape = super::tape(place, false);
        tape.settle();
        // The order of parameters does not matter, since no optimizer loops over them here.
        let (trainer, params) = Trainer::with(model, setup, &tape, Builder::made);
        drop(params);
        Self {
            config: model.config.clone(),
            making: Making::of(setup),
            place,
            ready: tape.ready(),
            tape,
            trainer,
        }
    }

    /// Returns the kept model, reset for this setup, if it is the setup's model; otherwise makes a new one.
    pub fn turned_to(standing: Option<Self>, model: &Model, setup: &Setup, place: Place) -> Self {
        match standing {
            Some(mut standing) if standing.is_of(model, setup, place) => {
                standing.trainer.turn_to(model, setup);
                standing.tape.rewind(&standing.ready);
                standing
            }
            _ => Self::of(model, setup, place),
        }
    }

    fn is_of(&self, model: &Model, setup: &Setup, place: Place) -> bool {
        self.place == place && self.making == Making::of(setup) && self.config == model.config
    }
}
