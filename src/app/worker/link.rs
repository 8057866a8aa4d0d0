//! Connects to a host: a worker or, where workers are blocked, the page's own thread.

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
    /// Starts a worker that runs this same WebAssembly; defined in `src/app/js/boot.js`.
    #[wasm_bindgen(catch, js_namespace = vramscope, js_name = startWorker)]
    fn start_worker() -> Result<Worker, JsValue>;
}

/// Events from a host.
pub enum Event {
    /// A reply.
    Reply(Reply),
    /// The worker failed to start or died silently; holds the browser's message.
    Broken(String),
}

/// A running host.
pub enum Link {
    /// Host in a worker, with the listeners for its events.
    Worker(Worker, [EventListener; 2]),
    /// Host on the page's own thread, running between frames.
    Local(Rc<Pump>),
}

impl Link {
    /// Starts a worker whose events go to `hear`; `None` if the browser refuses immediately.
    pub fn worker(hear: impl Fn(Event) + Clone + 'static) -> Option<Self> {
        let worker = start_worker().ok()?;
        let on_reply = {
            let hear = hear.clone();
            EventListener::new(&worker, "message", move |event| {
                hear(Event::Reply(decode(event.unchecked_ref::<MessageEvent>().data())));
            })
        };
        let on_error = EventListener::new(&worker, "error", move |event| {
            // A worker whose script is blocked reports an event without a message.
            let message = event.dyn_ref().map(ErrorEvent::message).unwrap_or_default();
            hear(Event::Broken(message));
        });
        Some(Self::Worker(worker, [on_reply, on_error]))
    }

    /// Starts a host on this thread; `None` if the browser does not support even that.
    pub fn local(hear: impl Fn(Event) + 'static) -> Option<Self> {
        Pump::new(move |reply| hear(Event::Reply(reply))).ok().map(Self::Local)
    }

    /// Sends an order.
    pub fn send(&self, order: Order) {
        match self {
            Self::Worker(worker, _) => {
                let buffer = encode(&order);
                // The buffer was created here, so ownership can be transferred.
                worker
                    .post_message_with_transfer(&buffer, &js_sys::Array::of1(&buffer))
                    .ok();
            }
            Self::Local(pump) => pump.take(order),
        }
    }

    /// Stops the host; no further events arrive.
    pub fn end(self) {
        if let Self::Worker(worker, listeners) = self {
            drop(listeners);
            worker.terminate();
        }
    }
}
