//! Lets another thread hear what a tape writes down while it is being written.

use super::core::Tape;
use super::log::Event;
#[cfg(not(target_family = "wasm"))]
use super::log::Log;

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
    /// What comes then.
    pub then: Then,
}

/// What comes after a part of a run that was told.
#[derive(Debug)]
pub enum Then {
    /// Another part.
    More,
    /// Another part, after this instant.
    Reached(Mark),
    /// The forwards and backwards of a step are over; this is the rest of the run.
    Rest(Rest),
}

/// What comes after the forwards and backwards of a step.
#[derive(Debug)]
pub struct Rest {
    /// The update of the first step, and that of every later one.
    pub updates: [Vec<Event>; 2],
    /// Gradients are dropped.
    pub zero_grad: Vec<Event>,
}

/// Who hears what is written down.
#[cfg(not(target_family = "wasm"))]
pub(super) struct Follower {
    to: std::sync::mpsc::Sender<Written>,
    /// Events and storages that it has heard of.
    heard: (usize, usize),
    /// Whether it is told nothing now.
    hushed: bool,
}

#[cfg(not(target_family = "wasm"))]
impl Follower {
    /// Events that are worth a message.
    const ENOUGH: usize = 4096;

    fn hear(&mut self, log: &Log, reached: Option<Mark>) {
        if self.hushed || reached.is_none() && log.events.len() - self.heard.0 < Self::ENOUGH {
            return;
        }
        let then = reached.map_or(Then::More, Then::Reached);
        self.send(log, log.events.len(), then);
    }

    /// Hears the rest of a run, of which forwards and backwards, both updates and the whole end at `ends`.
    fn hear_rest(mut self, log: &Log, [passes, first, second, end]: [usize; 4]) {
        let part = |from: usize, to: usize| log.events[from..to].to_vec();
        let rest = Rest {
            updates: [part(passes, first), part(first, second)],
            zero_grad: part(second, end),
        };
        self.send(log, passes, Then::Rest(rest));
    }

    /// Tells of the events before `to`, and of all storages.
    fn send(&mut self, log: &Log, to: usize, then: Then) {
        let (events, births) = std::mem::replace(&mut self.heard, (to, log.births.len()));
        let part = Written {
            requests: log.births.requests_from(births).collect(),
            events: log.events[events..to].to_vec(),
            then,
        };
        // who does not listen any more has heard enough
        let _ = self.to.send(part);
    }
}

#[cfg(not(target_family = "wasm"))]
impl Tape {
    /// From here on, what is written down is told there, a part at a time.
    pub fn follow(&self, to: std::sync::mpsc::Sender<Written>) {
        let heard = (self.mark(), self.births());
        *self.0.follower.borrow_mut() = Some(Follower {
            to,
            heard,
            hushed: false,
        });
    }

    /// Tells no more, so that who listens sees the end.
    pub fn unfollow(&self) {
        if let Ok(mut follower) = self.0.follower.try_borrow_mut() {
            *follower = None;
        }
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

    /// What is written from here on may still change: it is told to nobody before [`Self::tell_rest`].
    pub fn hush_follower(&self) {
        if let Some(follower) = &mut *self.0.follower.borrow_mut() {
            follower.hushed = true;
        }
    }

    /// Tells the rest of a run, of which forwards and backwards, both updates and the whole end at `ends`; if there is
    /// no such rest, that nothing more is told.
    pub fn tell_rest(&self, ends: Option<[usize; 4]>) {
        if let (Some(follower), Some(ends)) = (self.0.follower.take(), ends) {
            follower.hear_rest(&self.0.log.borrow(), ends);
        }
    }
}

/// WebAssembly has no other thread.
#[cfg(target_family = "wasm")]
impl Tape {
    #[inline(always)]
    pub(super) const fn tell(&self) {}

    /// Tells nobody.
    #[inline(always)]
    pub const fn reach(&self, _: Mark) {}

    /// Changes nothing.
    #[inline(always)]
    pub const fn hush_follower(&self) {}

    /// Tells nobody.
    #[inline(always)]
    pub fn tell_rest(&self, _: Option<[usize; 4]>) {}
}
