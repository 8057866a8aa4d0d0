//! Part of the page that loads when it becomes visible.

use std::rc::Rc;

use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::IntersectionObserver;

use crate::events::listen;
use crate::lazy::{Lazy, LazyPart};

/// A part of the page that is fetched and started only when it becomes visible.
#[component]
pub fn InSight(
    of: Lazy,
    testid: &'static str,
    /// True for what is printed too: it comes with the first move of the pointer or press of a key, which print the page.
    #[prop(optional)]
    is_printed: bool,
) -> impl IntoView {
    let seen = RwSignal::new(false);
    if is_printed {
        for kind in ["pointermove", "pointerdown", "keydown"] {
            listen(&document(), kind, move |_| {
                if !seen.get_untracked() {
                    seen.set(true);
                }
            });
        }
    }
    let place = NodeRef::<html::Div>::new();
    Effect::new(move || {
        if let Some(element) = place.get() {
            watch(&element, move |is_seen| _ = is_seen.then(|| seen.try_set(true)));
        }
    });
    view! {
        <div class="in-sight" node_ref=place data-testid=testid>
            <Show when=move || seen.get()>
                <LazyPart of />
            </Show>
        </div>
    }
}

/// True while an element is visible, and before it is known.
pub fn while_in_sight(of: NodeRef<html::Div>) -> RwSignal<bool> {
    let seen = RwSignal::new(true);
    Effect::new(move || {
        if let Some(element) = of.get() {
            watch(&element, move |is_seen| _ = seen.try_set(is_seen));
        }
    });
    seen
}

/// Tells when an element becomes visible or is no longer, or once that it is if the browser cannot tell.
fn watch(element: &web_sys::Element, tell: impl Fn(bool) + 'static) {
    let tell = Rc::new(tell);
    let hear = tell.clone();
    let notice = Closure::<dyn Fn(js_sys::Array)>::new(move |entries: js_sys::Array| {
        let last = entries.iter().last();
        let last = last.and_then(|entry| entry.dyn_into::<web_sys::IntersectionObserverEntry>().ok());
        if let Some(entry) = last {
            hear(entry.is_intersecting());
        }
    });
    let Ok(observer) = IntersectionObserver::new(notice.as_ref().unchecked_ref()) else {
        return tell(true);
    };
    observer.observe(element);
    let kept = StoredValue::new_local((observer, notice));
    on_cleanup(move || kept.with_value(|(observer, _)| observer.disconnect()));
}
