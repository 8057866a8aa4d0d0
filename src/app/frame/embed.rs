//! Shows one part of the page inside a frame of another page.

use js_sys::{Object, Reflect};
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;

use super::app::Routed;
use crate::i18n::{t, use_i18n};
use crate::pages::plan::PlanWidget;
use crate::part::text;
use crate::shell::Store;
use crate::state::{Key, Widget};

/// Returns the widget requested by the address if the page is framed; `None` for the normal page.
pub fn part(store: Store) -> Option<Widget> {
    (store.text(Key::Embed) == "1").then(|| Widget::named(&store.text(Key::Widget)))
}

/// Shows a widget with a link to the full page.
#[component]
pub fn Embedded(part: Widget) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    tell_height(store);
    let content = match part {
        Widget::Page => view! { <Routed /> }.into_any(),
        _ => view! { <PlanWidget part /> }.into_any(),
    };
    view! {
        <div class="embedded">
            {content}
            <a class="embedded-home" href=text(move || whole_page(store)) target="_blank" rel="noopener">
                {t!(i18n, embed.open)}
            </a>
        </div>
    }
}

/// Address of the full page with the same entries.
fn whole_page(store: Store) -> String {
    let mut address = store.address();
    for key in Key::OF_FRAME {
        address.draft.set(key, "");
    }
    let path = window().location().pathname().unwrap_or_default();
    format!("{path}{}", address.to_fragment())
}

/// Reports this page's height to the embedding page, now and after every change.
fn tell_height(store: Store) {
    let (Ok(Some(parent)), Some(body)) = (window().parent(), document().body()) else {
        return;
    };
    if let Some(root) = document().document_element() {
        // Setting an attribute on the root element cannot fail.
        root.set_attribute("data-embed", "1").ok();
    }
    let measured = body.clone();
    let tell = Closure::<dyn Fn()>::new(move || {
        let height = measured.get_bounding_client_rect().height().ceil();
        let id = store.text(Key::Id);
        // The target origin is `*`: the embedding page is unknown, and the height is no secret.
        parent.post_message(&message(height, &id), "*").ok();
    });
    let Ok(observer) = web_sys::ResizeObserver::new(tell.as_ref().unchecked_ref()) else {
        return;
    };
    observer.observe(&body);
    let kept = StoredValue::new_local((observer, tell));
    on_cleanup(move || kept.with_value(|(observer, _)| observer.disconnect()));
}

/// Builds `{ type: "vramscope:height", height, id }`; documented in `src/app/js/embed.js`.
fn message(height: f64, id: &str) -> Object {
    let message = Object::new();
    let entries = [
        ("type", "vramscope:height".into()),
        ("height", height.into()),
        ("id", id.into()),
    ];
    for (name, value) in entries {
        // Setting a property on a new object cannot fail.
        Reflect::set(&message, &name.into(), &value).ok();
    }
    message
}
