//! Rust side of `src/app/js/offline.js`: reads its offers and accepts them.

use leptos::prelude::*;

use crate::events::listen;

/// Signals whether something is on offer. The root element's `data-WHAT` attribute holds the state and the event
/// `vramscope:WHAT` announces changes.
pub fn offered(what: &'static str) -> ReadSignal<bool> {
    let now = move || {
        document()
            .document_element()
            .is_some_and(|root| root.has_attribute(&format!("data-{what}")))
    };
    let (offered, set) = signal(now());
    listen(&window(), format!("vramscope:{what}"), move |_| set.set(now()));
    offered
}

/// Accepts an offer.
pub fn ask(what: &str) {
    if let Ok(event) = web_sys::Event::new(&format!("vramscope:do-{what}")) {
        // Dispatching our own event cannot fail.
        window().dispatch_event(&event).ok();
    }
}
