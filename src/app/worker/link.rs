//! The way to a host: a worker, or where workers are refused the page's own thread.

use std::rc::Rc;

use wasm_bindgen::closure::Closure;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{ErrorEvent, MessageEvent, Worker};

use super::protocol::{Order, Reply};
use super::pump::Pump;
use super::wire::{decode, encode};

#[wasm_bindgen]
extern "C" {
    /// `style/boot.js`: a worker that runs this WebAssembly.
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
    /// In a worker.
    Worker(Worker),
    /// On the page's own thread, between its frames.
    Local(Rc<Pump>),
}

impl Link {
    /// A worker whose events go to `hear`; `None` where the browser refuses one at once.
    pub fn worker(hear: impl Fn(Event) + Clone + 'static) -> Option<Self> {
        let worker = start_worker().ok()?;
        let on_reply = {
            let hear = hear.clone();
            Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| hear(Event::Reply(decode(event.data()))))
        };
        let on_error = Closure::<dyn Fn(JsValue)>::new(move |event: JsValue| {
            // A worker whose script is refused reports an event without a message.
            let message = event.dyn_into().map(|e: ErrorEvent| e.message()).unwrap_or_default();
            hear(Event::Broken(message));
        });
        worker.set_onmessage(Some(on_reply.as_ref().unchecked_ref()));
        worker.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        // A page starts one worker, and another after each fault.
        on_reply.forget();
        on_error.forget();
        Some(Self::Worker(worker))
    }

    /// A host on this thread; `None` where the browser cannot even run that.
    pub fn local(hear: impl Fn(Event) + 'static) -> Option<Self> {
        Pump::new(move |reply| hear(Event::Reply(reply))).ok().map(Self::Local)
    }

    /// Hands over an order.
    pub fn send(&self, order: Order) {
        match self {
            Self::Worker(worker) => {
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
        if let Self::Worker(worker) = self {
            worker.set_onmessage(None);
            worker.set_onerror(None);
            worker.terminate();
        }
    }
}
