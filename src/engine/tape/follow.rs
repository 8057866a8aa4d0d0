//! Lets another thread hear what a tape writes down while it is being written.

use super::core::Tape;
use super::log::{Event, Log};

/// An instant of a run at which its figures are read, in the order of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// The model is made.
    Model,
    /// Inputs of a micro-batch are on the GPU.
    BeforeForward,
    /// Its loss is there, other outputs are dropped.
    AfterForward,
    /// Its backward is done.
    AfterBackward,
    /// Optimizer and scaler are done.
    AfterOptimizer,
    /// Gradients are dropped.
    End,
}

/// What was written down since the time before.
#[derive(Debug)]
pub struct Written {
    /// Bytes that each new storage asks for, in the order of birth.
    pub requests: Vec<u64>,
    /// Births and deaths.
    pub events: Vec<Event>,
    /// The instant at which the part ends, if it is one.
    pub reached: Option<Mark>,
}

/// Who hears what is written down.
#[cfg(not(target_family = "wasm"))]
pub(super) struct Follower {
    to: std::sync::mpsc::Sender<Written>,
    /// Events and storages that it has heard of.
    heard: (usize, usize),
}

/// WebAssembly has no other thread.
#[cfg(target_family = "wasm")]
pub(super) enum Follower {}

#[cfg(target_family = "wasm")]
impl Follower {
    fn hear(&mut self, _: &Log, _: Option<Mark>) {
        match *self {}
    }
}

#[cfg(not(target_family = "wasm"))]
impl Follower {
    /// Events that are worth a message.
    const ENOUGH: usize = 4096;

    fn hear(&mut self, log: &Log, reached: Option<Mark>) {
        let (events, births) = self.heard;
        if reached.is_none() && log.events.len() - events < Self::ENOUGH {
            return;
        }
        self.heard = (log.events.len(), log.births.len());
        let part = Written {
            requests: log.births.requests_from(births).collect(),
            events: log.events[events..].to_vec(),
            reached,
        };
        // who does not listen any more has heard enough
        let _ = self.to.send(part);
    }
}

impl Tape {
    /// From here on, what is written down is told there, a part at a time.
    #[cfg(not(target_family = "wasm"))]
    pub fn follow(&self, to: std::sync::mpsc::Sender<Written>) {
        let heard = (self.mark(), self.births());
        *self.0.follower.borrow_mut() = Some(Follower { to, heard });
    }

    /// Tells what was written down, where it is enough to be worth it.
    pub(super) fn tell(&self) {
        if let Some(follower) = &mut *self.0.follower.borrow_mut() {
            follower.hear(&self.0.log.borrow(), None);
        }
    }

    /// Tells what was written down up to an instant of the run.
    pub fn reach(&self, mark: Mark) {
        if let Some(follower) = &mut *self.0.follower.borrow_mut() {
            follower.hear(&self.0.log.borrow(), Some(mark));
        }
    }

    /// What is written from here on may still change: it is told to nobody.
    pub fn dismiss_follower(&self) {
        self.0.follower.take();
    }
}
