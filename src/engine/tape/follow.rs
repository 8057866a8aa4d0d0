//! Sends a tape's events to another thread while they are being recorded.

use super::core::Tape;
use super::kept::Replaced;
use super::log::Event;
#[cfg(not(target_family = "wasm"))]
use super::log::Log;

/// A mark of a run at which its figures are noted, in the order of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// The model is made.
    Model,
    /// Inputs of a micro-batch are on the GPU.
    BeforeForward,
    /// The loss of the micro-batch is computed, and other outputs are dropped.
    AfterForward,
    /// Backward of the micro-batch is done.
    AfterBackward,
    /// Optimizer and scaler are done.
    AfterOptimizer,
    /// Gradients are dropped.
    End,
}

/// Events recorded since the last message.
#[derive(Debug)]
pub struct Written {
    /// Bytes that each new storage requests, in the order of allocation.
    pub requests: Vec<u64>,
    /// Allocations and frees.
    pub events: Vec<Event>,
    /// Position after these events.
    pub then: Then,
}

/// Position in the run after the events of a message.
#[derive(Debug)]
pub enum Then {
    /// More events follow.
    More,
    /// More events follow, after this mark.
    Reached(Mark),
    /// Forward and backward of a step are over; this is the rest of the run.
    Rest(Rest),
}

/// Events after forward and backward of a step.
#[derive(Debug)]
pub struct Rest {
    /// Update of the first step, and of every step after it.
    pub updates: [Vec<Event>; 2],
    /// Events that drop the gradients.
    pub zero_grad: Vec<Event>,
    /// Where every step but the first frees what a module keeps of the step before; counted from the step's first event.
    pub replaced: Option<Replaced>,
}

/// Marks of the rest of a run among all its events.
#[derive(Debug, Clone, Copy)]
pub struct RestMarks {
    /// Ends of forward and backward, of both updates, and of the run.
    pub ends: [usize; 4],
    /// As in [`Rest`].
    pub replaced: Option<Replaced>,
}

/// Receiver of a tape's events.
#[cfg(not(target_family = "wasm"))]
pub(super) struct Follower {
    to: std::sync::mpsc::Sender<Written>,
    /// Numbers of events and storages sent so far.
    sent: (usize, usize),
    /// True while sending is suspended.
    paused: bool,
}

#[cfg(not(target_family = "wasm"))]
impl Follower {
    /// Fewest events worth a message.
    const ENOUGH: usize = 4096;

    fn send_if_due(&mut self, log: &Log, reached: Option<Mark>) {
        if self.paused || reached.is_none() && log.events.len() - self.sent.0 < Self::ENOUGH {
            return;
        }
        let then = reached.map_or(Then::More, Then::Reached);
        self.send(log, log.events.len(), then);
    }

    /// Sends the rest of a run.
    fn send_rest(mut self, log: &Log, marks: RestMarks) {
        let [passes, first, second, end] = marks.ends;
        let part = |from: usize, to: usize| log.events[from..to].to_vec();
        let rest = Rest {
            updates: [part(passes, first), part(first, second)],
            zero_grad: part(second, end),
            replaced: marks.replaced,
        };
        self.send(log, passes, Then::Rest(rest));
    }

    /// Sends the events before `to`, and all new storages.
    fn send(&mut self, log: &Log, to: usize, then: Then) {
        let (events, allocations) = std::mem::replace(&mut self.sent, (to, log.allocations.len()));
        let part = Written {
            requests: log.allocations.requests_from(allocations).collect(),
            events: log.events[events..to].to_vec(),
            then,
        };
        // A receiver that has hung up needs no more events.
        let _ = self.to.send(part);
    }
}

#[cfg(not(target_family = "wasm"))]
impl Tape {
    /// Sends events to `to` from now on, in batches.
    pub fn follow(&self, to: std::sync::mpsc::Sender<Written>) {
        let sent = (self.mark(), self.allocations());
        *self.0.follower.borrow_mut() = Some(Follower {
            to,
            sent,
            paused: false,
        });
    }

    /// Stops sending and closes the channel, so that the receiver sees its end.
    pub fn unfollow(&self) {
        if let Ok(mut follower) = self.0.follower.try_borrow_mut() {
            *follower = None;
        }
    }

    /// Sends the new events if there are enough of them.
    pub(super) fn send_new_events(&self) {
        if let Some(follower) = &mut *self.0.follower.borrow_mut() {
            follower.send_if_due(&self.0.log.borrow(), None);
        }
    }

    /// Sends the new events up to a mark of the run.
    pub fn reach(&self, mark: Mark) {
        if let Some(follower) = &mut *self.0.follower.borrow_mut() {
            follower.send_if_due(&self.0.log.borrow(), Some(mark));
        }
    }

    /// Suspends sending until [`Self::send_rest`], because the events from here on may still change. Returns true if
    /// events were sent until now.
    pub fn pause_follower(&self) -> bool {
        match &mut *self.0.follower.borrow_mut() {
            Some(follower) => !std::mem::replace(&mut follower.paused, true),
            None => false,
        }
    }

    /// Sends events again, those too that were recorded meanwhile.
    pub fn resume_follower(&self) {
        if let Some(follower) = &mut *self.0.follower.borrow_mut() {
            follower.paused = false;
        }
    }

    /// Sends the rest of a run; without such a rest, closes the channel.
    pub fn send_rest(&self, marks: Option<RestMarks>) {
        if let (Some(follower), Some(marks)) = (self.0.follower.take(), marks) {
            follower.send_rest(&self.0.log.borrow(), marks);
        }
    }
}

/// WebAssembly has no other thread, so nothing is sent.
#[cfg(target_family = "wasm")]
impl Tape {
    /// Does nothing.
    #[inline(always)]
    pub const fn unfollow(&self) {}

    #[inline(always)]
    pub(super) const fn send_new_events(&self) {}

    /// Does nothing.
    #[inline(always)]
    pub const fn reach(&self, _: Mark) {}

    /// Does nothing.
    #[inline(always)]
    pub const fn pause_follower(&self) -> bool {
        false
    }

    /// Does nothing.
    #[inline(always)]
    pub const fn resume_follower(&self) {}

    /// Does nothing.
    #[inline(always)]
    pub fn send_rest(&self, _: Option<RestMarks>) {}
}
