//! What happens later: events of the browser and timers, for as long as the component lives that asked for them.

use std::borrow::Cow;
use std::time::Duration;

use gloo_events::{EventListener, EventListenerOptions};
use gloo_timers::callback::Timeout;
use gloo_timers::future::sleep;
use leptos::prelude::*;
use leptos::task::spawn_local;
use web_sys::{Event, EventTarget};

/// Hears an event of `target` until the component that calls this goes away.
pub fn listen(target: &EventTarget, kind: impl Into<Cow<'static, str>>, hear: impl FnMut(&Event) + 'static) {
    // What is stored goes with its owner, and a listener that goes hears nothing more.
    StoredValue::new_local(EventListener::new(target, kind, hear));
}

/// As [`listen`], where `hear` may prevent what the browser would do.
pub fn listen_first(target: &EventTarget, kind: &'static str, hear: impl FnMut(&Event) + 'static) {
    let options = EventListenerOptions::enable_prevent_default();
    StoredValue::new_local(EventListener::new_with_options(target, kind, options, hear));
}

/// Does something after a while, whatever has become of the component that asked for it.
pub fn after(while_: Duration, act: impl FnOnce() + 'static) {
    spawn_local(async move {
        sleep(while_).await;
        act();
    });
}

/// Something that is done after a while, unless it is stopped or begun anew before, or the component goes away.
#[derive(Debug, Clone, Copy)]
pub struct Pending(StoredValue<Option<Timeout>, LocalStorage>);

impl Pending {
    /// Nothing yet, of the component that calls this.
    pub fn new() -> Self {
        Self(StoredValue::new_local(None))
    }

    /// Does this after a while, in the place of what was pending.
    pub fn begin(self, after: Duration, act: impl FnOnce() + 'static) {
        let timer = Timeout::new(after.as_millis() as u32, act);
        // Where the component has gone, the timer goes too.
        self.0.try_set_value(Some(timer));
    }

    /// Does nothing.
    pub fn stop(self) {
        self.0.try_set_value(None);
    }
}
