//! Runs a host in tasks of one slice each, so that messages and page frames are handled in between.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use gloo_events::EventListener;
use wasm_bindgen::JsValue;
use web_sys::{MessageChannel, MessagePort};

use super::host::Host;
use super::lazy::{self, Need};
use super::protocol::{Order, Reply};

/// Drives a host.
pub struct Pump {
    host: RefCell<Host>,
    /// A message to this port triggers the next slice as a task of its own, queued behind those already waiting.
    next: MessagePort,
    waiting: Cell<bool>,
    /// True while a chunk is loading.
    fetching: Cell<bool>,
    deliver: Box<dyn Fn(Reply)>,
}

impl Pump {
    /// Creates a host that passes its replies to `deliver`.
    ///
    /// # Errors
    /// Fails if the browser has no message channels.
    pub fn new(deliver: impl Fn(Reply) + 'static) -> Result<Rc<Self>, JsValue> {
        let channel = MessageChannel::new()?;
        let pump = Rc::new(Self {
            host: RefCell::default(),
            next: channel.port2(),
            waiting: Cell::new(false),
            fetching: Cell::new(false),
            deliver: Box::new(deliver),
        });
        let slice = {
            let pump = pump.clone();
            EventListener::new(&channel.port1(), "message", move |_| pump.slice())
        };
        channel.port1().start();
        // Leaked on purpose: the host lives as long as the page or the worker.
        slice.forget();
        Ok(pump)
    }

    /// Takes an order; work starts after all queued messages are read.
    pub fn take(self: &Rc<Self>, order: Order) {
        self.host.borrow_mut().take(order);
        self.go_on();
    }

    fn go_on(self: &Rc<Self>) {
        if self.host.borrow().is_busy() && !self.waiting.replace(true) {
            // Posting to a port of our own cannot fail.
            self.next.post_message(&JsValue::NULL).ok();
        }
        let need = self.host.borrow().need();
        if let Some(need) = need.filter(|_| !self.fetching.replace(true)) {
            wasm_bindgen_futures::spawn_local(self.clone().fetch(need));
        }
    }

    /// Loads the chunk that a question waits for; drops the question if it cannot be loaded.
    async fn fetch(self: Rc<Self>, need: Need) {
        if need == Need::UnpackedRecording {
            return self.unpack().await;
        }
        let chunks = self.host.borrow().chunks();
        let fetched = lazy::fetch(need, chunks).await;
        self.fetching.set(false);
        let gone = match fetched {
            Some(chunks) => {
                self.host.borrow_mut().receive(chunks);
                None
            }
            None => self.host.borrow_mut().give_up(need),
        };
        self.go_on();
        gone.into_iter().for_each(&self.deliver);
    }

    /// Unpacks the recording that a question waits for.
    async fn unpack(self: Rc<Self>) {
        let (packed, replayer) = {
            let host = self.host.borrow();
            (host.packed(), host.chunks().replayer)
        };
        if let Some((packed, replayer)) = packed.zip(replayer) {
            let recording = (replayer.unpack)(packed.bytes).await;
            self.host.borrow_mut().receive_recording(packed.number, recording);
        }
        self.fetching.set(false);
        self.go_on();
    }

    fn slice(self: &Rc<Self>) {
        self.waiting.set(false);
        let reply = self.host.borrow_mut().step();
        self.go_on();
        reply.into_iter().for_each(&self.deliver);
    }
}
