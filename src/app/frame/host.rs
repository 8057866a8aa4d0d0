//! The other half of `src/app/js/offline.js`: what it offers, and how it is asked.

use leptos::prelude::*;

use crate::events::listen;

/// Whether this is on offer, followed as it changes: `data-WHAT` of the root element, and the event
/// `vramscope:WHAT`, say so.
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

/// Asks for what is on offer.
pub fn ask(what: &str) {
    if let Ok(event) = web_sys::Event::new(&format!("vramscope:do-{what}")) {
        // Nobody refuses this event.
        window().dispatch_event(&event).ok();
    }
}
