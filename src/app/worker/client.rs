//! Sends the page's questions to the worker and hands each answer to the caller that asked.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use leptos::prelude::*;

use super::link::{Event, Link};
use super::protocol::{Answer, Ask, Order, Progress, Reply, Slot};
use crate::shell::fault;

/// Handle through which components reach the engine.
#[derive(Debug, Clone, Copy)]
pub struct Engine(StoredValue<Client, LocalStorage>);

impl Engine {
    /// Starts the worker and provides the engine to all components below.
    pub fn provide() -> Self {
        let client = Client::default();
        client.start();
        let engine = Self(StoredValue::new_local(client));
        provide_context(engine);
        engine
    }

    /// Returns the engine that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Asks a question, replacing any earlier one in the same slot: answers to that one are dropped. `on_answer` gets
    /// every answer along with the progress so far, or `None` if the host has no (further) answer.
    pub fn ask(self, slot: Slot, ask: Ask, on_answer: impl FnMut(Option<Answer>, Progress) + 'static) {
        self.0.with_value(|client| client.ask(slot, ask, Box::new(on_answer)));
    }

    /// Asks once the slot's pending question is answered; of several waiting questions only the newest is kept. Meant
    /// for questions that follow the pointer: every answer is shown, however fast the pointer moves.
    pub fn ask_next(self, slot: Slot, ask: Ask, on_answer: impl FnMut(Option<Answer>, Progress) + 'static) {
        self.0
            .with_value(|client| client.ask_next(slot, ask, Box::new(on_answer)));
    }

    /// Drops the slot's question; its answers are no longer wanted.
    pub fn cancel(self, slot: Slot) {
        self.0.with_value(|client| client.cancel(slot));
    }
}

type OnAnswer = Box<dyn FnMut(Option<Answer>, Progress)>;

/// Silence, in ms, after which a worker with a pending question is taken to be inside a large simulation. Starting a
/// new worker from scratch is then faster than waiting.
const SILENCE_MS: f64 = 1000.0;

/// A question without a complete answer yet.
struct Asked {
    id: u32,
    /// Time of the question, or of its latest partial answer.
    since_ms: f64,
    ask: Ask,
    on_answer: OnAnswer,
}

#[derive(Default)]
struct State {
    link: Option<Link>,
    /// True once the worker has answered. An error before that means that it never started.
    heard: bool,
    last_id: u32,
    asked: BTreeMap<Slot, Asked>,
    next: BTreeMap<Slot, (Ask, OnAnswer)>,
}

#[derive(Clone, Default)]
struct Client(Rc<RefCell<State>>);

impl Client {
    fn start(&self) {
        let link = Link::worker(self.ear()).or_else(|| Link::local(self.ear()));
        self.0.borrow_mut().link = link;
    }

    fn ear(&self) -> impl Fn(Event) + Clone + 'static {
        let client = self.clone();
        move |event| match event {
            Event::Reply(reply) => client.hear(reply),
            Event::Broken(message) => client.broken(message),
        }
    }

    fn ask(&self, slot: Slot, ask: Ask, on_answer: OnAnswer) {
        if self.0.borrow().link.is_none() {
            // The previous worker stopped after a fault.
            self.start();
        }
        self.leave_stuck_worker(slot);
        let state = &mut *self.0.borrow_mut();
        state.last_id += 1;
        let (id, since_ms) = (state.last_id, now_ms());
        state.next.remove(&slot);
        if let Some(link) = &state.link {
            let ask = ask.clone();
            link.send(Order::Ask { id, slot, ask });
        }
        let asked = Asked {
            id,
            since_ms,
            ask,
            on_answer,
        };
        state.asked.insert(slot, asked);
    }

    /// Abandons a superseded question at once, even in the middle of its simulation.
    fn leave_stuck_worker(&self, slot: Slot) {
        let stuck = {
            let state = self.0.borrow();
            let silent = |asked: &Asked| now_ms() - asked.since_ms > SILENCE_MS;
            let is_worker = matches!(state.link, Some(Link::Worker(..)));
            is_worker && state.heard && state.asked.get(&slot).is_some_and(silent)
        };
        if stuck {
            self.0.borrow_mut().asked.remove(&slot);
            self.replace(Link::worker(self.ear()).or_else(|| Link::local(self.ear())));
        }
    }

    /// Replaces the host and sends all unanswered questions to the new one.
    fn replace(&self, link: Option<Link>) {
        let state = &mut *self.0.borrow_mut();
        state.link.take().into_iter().for_each(Link::end);
        if let Some(link) = &link {
            for (&slot, asked) in &state.asked {
                let (id, ask) = (asked.id, asked.ask.clone());
                link.send(Order::Ask { id, slot, ask });
            }
        }
        state.link = link;
    }

    fn ask_next(&self, slot: Slot, ask: Ask, on_answer: OnAnswer) {
        let busy = self.0.borrow().asked.contains_key(&slot);
        if busy {
            self.0.borrow_mut().next.insert(slot, (ask, on_answer));
        } else {
            self.ask(slot, ask, on_answer);
        }
    }

    fn cancel(&self, slot: Slot) {
        let state = &mut *self.0.borrow_mut();
        state.next.remove(&slot);
        if let (Some(_), Some(link)) = (state.asked.remove(&slot), &state.link) {
            link.send(Order::Cancel(slot));
        }
    }

    fn hear(&self, reply: Reply) {
        match reply {
            Reply::Answered {
                id,
                slot,
                progress,
                answer,
            } => {
                if !std::mem::replace(&mut self.0.borrow_mut().heard, true) {
                    fault::over();
                }
                self.answered(id, slot, progress, answer.map(|a| *a));
            }
            Reply::Fault(message) => self.stop(&message),
        }
    }

    /// Removes the question from the state while its callback runs, since the callback may ask again.
    fn answered(&self, id: u32, slot: Slot, progress: Progress, answer: Option<Answer>) {
        let mut asked = {
            let state = &mut *self.0.borrow_mut();
            match state.asked.remove(&slot) {
                Some(asked) if asked.id == id => asked,
                // The answer to an older question arrived after a newer one was asked.
                Some(newer) => {
                    state.asked.insert(slot, newer);
                    return;
                }
                None => return,
            }
        };
        asked.since_ms = now_ms();
        (asked.on_answer)(answer, progress);
        if !progress.is_complete() {
            let state = &mut *self.0.borrow_mut();
            state.asked.entry(slot).or_insert(asked);
            return;
        }
        let next = self.0.borrow_mut().next.remove(&slot);
        if let Some((ask, on_answer)) = next {
            self.ask(slot, ask, on_answer);
        }
    }

    fn broken(&self, message: String) {
        if self.0.borrow().heard {
            return self.stop(&message);
        }
        // Workers are blocked, by an embedding page's policy or by an old browser: run the host on this thread.
        self.replace(Link::local(self.ear()));
    }

    /// Drops the stopped worker; the next question starts a new one.
    fn stop(&self, message: &str) {
        let state = &mut *self.0.borrow_mut();
        state.link.take().into_iter().for_each(Link::end);
        state.asked = BTreeMap::new();
        state.next = BTreeMap::new();
        state.heard = false;
        fault::of_worker(message);
    }
}

fn now_ms() -> f64 {
    js_sys::Date::now()
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
