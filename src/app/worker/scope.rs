//! Entry point of the program inside the worker.

use gloo_events::EventListener;
use wasm_bindgen::JsCast;
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent};

use super::protocol::Reply;
use super::pump::Pump;
use super::wire::{decode, encode};

/// Returns the scope of the worker that this code runs in; `None` on the page.
pub fn here() -> Option<DedicatedWorkerGlobalScope> {
    js_sys::global().dyn_into().ok()
}

/// Starts answering the page's orders.
pub fn start(scope: DedicatedWorkerGlobalScope) {
    report_panics(scope.clone());
    let replies = scope.clone();
    let Ok(pump) = Pump::new(move |reply| post(&replies, &reply)) else {
        return;
    };
    let take = EventListener::new(&scope, "message", move |event| {
        pump.take(decode(event.unchecked_ref::<MessageEvent>().data()));
    });
    // Leaked on purpose: the listener lives as long as the worker.
    take.forget();
}

fn report_panics(scope: DedicatedWorkerGlobalScope) {
    std::panic::set_hook(Box::new(move |info| {
        console_error_panic_hook::hook(info);
        post(&scope, &Reply::Fault(info.to_string()));
    }));
}

fn post(scope: &DedicatedWorkerGlobalScope, reply: &Reply) {
    let buffer = encode(reply);
    let given = js_sys::Array::of1(&buffer);
    // The buffer was created here, so ownership can be transferred.
    scope.post_message_with_transfer(&buffer, &given).ok();
}
