//! Work that is answered in slices, and the run that questions are asked about.

use vramscope_engine::Setup;
use vramscope_engine::recording::{About, Asked};
use vramscope_engine::simulate::Recording;

use super::protocol::Answer;
use super::run::{Ran, Subject};
use super::view::Card;

/// Most recent run, kept to answer questions about it.
pub struct Kept {
    /// Id of the run ([`RunView::id`](super::view::RunView::id)).
    pub id: u32,
    /// Model, setup and card that were simulated; `None` for a recording.
    pub subject: Option<Subject>,
    /// Recorded step apart from its memory; `None` for a simulation.
    pub recorded: Option<Box<Recorded>>,
    /// Result of the simulation.
    pub ran: Ran,
    /// Fit of the run on the card.
    pub card: Option<Card>,
}

/// Recorded step apart from its memory.
pub struct Recorded {
    /// Description of the recording.
    pub about: About,
    /// Answers to what its script asked the allocator.
    pub asked: Vec<Asked>,
    /// Number of samples and positions, for the time.
    pub setup: Setup,
    /// Work of GPU and host, for the time.
    pub work: Recording,
}

/// Work split into slices.
pub trait Parts {
    /// Upper bound of the answers still to come.
    fn left(&self) -> u32;

    /// Computes the next answer; runs at most a few simulations.
    fn next(&mut self) -> Option<Answer>;
}
