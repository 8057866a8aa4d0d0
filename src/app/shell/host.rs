//! The other half of `style/offline.js`: what it offers, and how it is asked.

use leptos::prelude::*;

/// Whether this is on offer, followed as it changes: `data-WHAT` of the root element, and the event
/// `vramscope:WHAT`, say so.
pub fn offered(what: &'static str) -> ReadSignal<bool> {
    let now = move || {
        document()
            .document_element()
            .is_some_and(|root| root.has_attribute(&format!("data-{what}")))
    };
    let (offered, set) = signal(now());
    let listener = window_event_listener_untyped(&format!("vramscope:{what}"), move |_| set.set(now()));
    on_cleanup(move || listener.remove());
    offered
}

/// Asks for what is on offer.
pub fn ask(what: &str) {
    if let Ok(event) = web_sys::Event::new(&format!("vramscope:do-{what}")) {
        // Nobody refuses this event.
        window().dispatch_event(&event).ok();
    }
}
