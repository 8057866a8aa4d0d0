//! The way to a host: a worker, or where workers are refused the page's own thread.

use std::rc::Rc;

use gloo_events::EventListener;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{ErrorEvent, MessageEvent, Worker};

use super::protocol::{Order, Reply};
use super::pump::Pump;
use super::wire::{decode, encode};

#[wasm_bindgen]
extern "C" {
    /// `src/app/js/boot.js`: a worker that runs this WebAssembly.
    #[wasm_bindgen(catch, js_namespace = vramscope, js_name = startWorker)]
    fn start_worker() -> Result<Worker, JsValue>;
}

/// What comes from a host.
pub enum Event {
    /// A reply.
    Reply(Reply),
    /// The worker did not come up, or broke off without a word; what the browser says of it.
    Broken(String),
}

/// A host that takes orders.
pub enum Link {
    /// In a worker, with what hears it.
    Worker(Worker, [EventListener; 2]),
    /// On the page's own thread, between its frames.
    Local(Rc<Pump>),
}

impl Link {
    /// A worker whose events go to `hear`; `None` where the browser refuses one at once.
    pub fn worker(hear: impl Fn(Event) + Clone + 'static) -> Option<Self> {
        let worker = start_worker().ok()?;
        let on_reply = {
            let hear = hear.clone();
            EventListener::new(&worker, "message", move |event| {
                hear(Event::Reply(decode(event.unchecked_ref::<MessageEvent>().data())));
            })
        };
        let on_error = EventListener::new(&worker, "error", move |event| {
            // A worker whose script is refused reports an event without a message.
            let message = event.dyn_ref().map(ErrorEvent::message).unwrap_or_default();
            hear(Event::Broken(message));
        });
        Some(Self::Worker(worker, [on_reply, on_error]))
    }

    /// A host on this thread; `None` where the browser cannot even run that.
    pub fn local(hear: impl Fn(Event) + 'static) -> Option<Self> {
        Pump::new(move |reply| hear(Event::Reply(reply))).ok().map(Self::Local)
    }

    /// Hands over an order.
    pub fn send(&self, order: Order) {
        match self {
            Self::Worker(worker, _) => {
                let buffer = encode(&order);
                // The buffer was made here, so it can be given away.
                worker
                    .post_message_with_transfer(&buffer, &js_sys::Array::of1(&buffer))
                    .ok();
            }
            Self::Local(pump) => pump.take(order),
        }
    }

    /// Hears and runs nothing more.
    pub fn end(self) {
        if let Self::Worker(worker, listeners) = self {
            drop(listeners);
            worker.terminate();
        }
    }
}
