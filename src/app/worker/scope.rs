//! The worker's side: what `main` does there.

use gloo_events::EventListener;
use wasm_bindgen::JsCast;
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent};

use super::protocol::Reply;
use super::pump::Pump;
use super::wire::{decode, encode};

/// The worker that this runs in; none on the page.
pub fn here() -> Option<DedicatedWorkerGlobalScope> {
    js_sys::global().dyn_into().ok()
}

/// Answers the page's orders from now on.
pub fn start(scope: DedicatedWorkerGlobalScope) {
    report_panics(scope.clone());
    let replies = scope.clone();
    let Ok(pump) = Pump::new(move |reply| post(&replies, &reply)) else {
        return;
    };
    let take = EventListener::new(&scope, "message", move |event| {
        pump.take(decode(event.unchecked_ref::<MessageEvent>().data()));
    });
    // For as long as the worker lives.
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
    // The buffer was made here, so it can be given away.
    scope.post_message_with_transfer(&buffer, &given).ok();
}
