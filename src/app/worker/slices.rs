//! Work that is answered in slices, and the run that questions are asked about.

use vramscope_engine::recording::{About, Asked};

use super::protocol::Answer;
use super::run::{Ran, Subject};
use super::view::Card;

/// Most recent run, kept to answer questions about it.
pub struct Kept {
    /// Id of the run ([`Run::id`]).
    pub id: u32,
    /// Model, setup and card that were simulated; `None` for a recording.
    pub subject: Option<Subject>,
    /// Recording, and the answers to what its script asked the allocator; `None` for a simulation.
    pub recorded: Option<Box<(About, Vec<Asked>)>>,
    /// Result of the simulation.
    pub ran: Ran,
    /// Fit of the run on the card.
    pub card: Option<Card>,
}

/// Work split into slices.
pub trait Parts {
    /// Upper bound of the answers still to come.
    fn left(&self) -> u32;

    /// Computes the next answer; runs at most a few simulations.
    fn next(&mut self) -> Option<Answer>;
}
