//! Event listeners and timers that end with the component that created them.

use std::borrow::Cow;
use std::time::Duration;

use gloo_events::{EventListener, EventListenerOptions};
use gloo_timers::callback::Timeout;
use gloo_timers::future::sleep;
use leptos::prelude::*;
use leptos::task::spawn_local;
use web_sys::{Event, EventTarget};

/// Listens to an event of `target` until the calling component is disposed of.
pub fn listen(target: &EventTarget, kind: impl Into<Cow<'static, str>>, hear: impl FnMut(&Event) + 'static) {
    // A stored value is dropped with its owner, and dropping a listener removes it.
    StoredValue::new_local(EventListener::new(target, kind, hear));
}

/// Listens like [`listen`], with a handler that may prevent the browser's default action.
pub fn listen_first(target: &EventTarget, kind: &'static str, hear: impl FnMut(&Event) + 'static) {
    let options = EventListenerOptions::enable_prevent_default();
    StoredValue::new_local(EventListener::new_with_options(target, kind, options, hear));
}

/// Runs `act` after a delay, even if the calling component is gone by then.
pub fn after(while_: Duration, act: impl FnOnce() + 'static) {
    spawn_local(async move {
        sleep(while_).await;
        act();
    });
}

/// A delayed action, cancelled when it is stopped or restarted or when its component is disposed of.
#[derive(Debug, Clone, Copy)]
pub struct Pending(StoredValue<Option<Timeout>, LocalStorage>);

impl Pending {
    /// Creates an idle timer owned by the calling component.
    pub fn new() -> Self {
        Self(StoredValue::new_local(None))
    }

    /// Runs `act` after a delay, replacing the pending action.
    pub fn begin(self, after: Duration, act: impl FnOnce() + 'static) {
        let timer = Timeout::new(after.as_millis() as u32, act);
        // If the component is gone, the timer is dropped too.
        self.0.try_set_value(Some(timer));
    }

    /// Cancels the pending action.
    pub fn stop(self) {
        self.0.try_set_value(None);
    }
}
