//! Part of the page that loads when it becomes visible.

use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::IntersectionObserver;

use crate::lazy::{Lazy, LazyPart};

/// A part of the page that is fetched and started only when it becomes visible.
#[component]
pub fn InSight(of: Lazy, testid: &'static str) -> impl IntoView {
    let seen = RwSignal::new(false);
    let place = NodeRef::<html::Div>::new();
    Effect::new(move || {
        if let Some(element) = place.get() {
            watch(&element, seen);
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

/// Sets `seen` when an element first becomes visible, or at once if the browser cannot tell.
fn watch(element: &web_sys::Element, seen: RwSignal<bool>) {
    let notice = Closure::<dyn Fn(js_sys::Array)>::new(move |entries: js_sys::Array| {
        let any = entries.iter().any(|entry| {
            entry
                .dyn_into::<web_sys::IntersectionObserverEntry>()
                .is_ok_and(|entry| entry.is_intersecting())
        });
        if any {
            seen.try_set(true);
        }
    });
    let Ok(observer) = IntersectionObserver::new(notice.as_ref().unchecked_ref()) else {
        seen.set(true);
        return;
    };
    observer.observe(element);
    let kept = StoredValue::new_local((observer, notice));
    on_cleanup(move || kept.with_value(|(observer, _)| observer.disconnect()));
}
