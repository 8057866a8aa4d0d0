//! `/course`: shows the rows of the course and handles the reader's input.
//!
//! [`course`](crate::course) renders the pages as HTML. This module inserts them into the document, listens to all
//! their fields and buttons by event delegation, and asks the engine for their setups.

mod acts;
mod fetched;
mod page;

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use crate::events::listen_first;
use crate::i18n::{t_string, use_i18n};
use crate::part::part;
use crate::shell::Store;
use crate::state::Key;
use crate::worker::{Engine, Slot};
use page::CourseState;

pub use fetched::load;
pub use page::KEPT;

/// Page with the contents at the left and the row at the right; embedded, a single figure.
#[component]
pub fn CoursePage() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let page = CourseState::new(store, i18n);
    Effect::new(move || fetched::follow(page, i18n.locale()));
    listen_first(&window(), "keydown", move |event| page.key(event.unchecked_ref()));
    on_cleanup(move || {
        Engine::get().cancel(Slot::Setups);
        page::set_presenting(false);
    });
    Effect::new(move || page::set_presenting(!store.text(Key::Present).is_empty()));
    // Only these keys re-render the page, so that fields keep their text and focus while the user types.
    let shown = Memo::new(move |_| {
        [Key::Row, Key::Figure, Key::Seed, Key::Present, Key::Lang, Key::Theme].map(|key| store.text(key))
    });
    let contents = Memo::new(move |_| page.contents());
    Effect::new(move |before: Option<String>| {
        let [id, ..] = shown.get();
        if before.is_some_and(|before| before != id)
            && let Some(top) = document().get_element_by_id("results")
        {
            top.scroll_into_view();
        }
        id
    });
    Effect::new(move || {
        shown.track();
        page.book.track();
        // Runs after the page is inserted into the document.
        request_animation_frame(move || page.ask());
    });
    let page = part(move || {
        shown.track();
        if page.failed.get() {
            return Some(view! { <p class="course-wait" role="alert">{page::FAILED}</p> }.into_any());
        }
        let html = page.html()?;
        let page = view! {
            <div
                class="course-page"
                inner_html=html
                on:input=move |event| page.entered(&event)
                on:change=move |event| page.changed(&event)
                on:click=move |event| page.clicked(&event)
                on:submit=move |event| page.answered(&event)
            ></div>
        };
        Some(page.into_any())
    });
    // Untracked: an embedded page's address sets this before the `#`, so it never changes.
    let is_alone = untrack(|| !store.text(Key::Embed).is_empty());
    let label = move || t_string!(i18n, nav.course);
    let beside = (!is_alone)
        .then(|| view! { <nav class="course-contents" aria-label=label inner_html=contents></nav> }.into_any());
    view! {
        <div class="course" class:alone=is_alone>
            {beside}
            <main class="results" id="results" tabindex="-1" aria-label=label>
                {page}
            </main>
        </div>
    }
}

/// Returns the element in which an event happened, or its nearest ancestor that matches.
fn closest(event: &web_sys::Event, selector: &str) -> Option<HtmlElement> {
    let target: web_sys::Element = event.target()?.dyn_into().ok()?;
    target.closest(selector).ok()??.dyn_into().ok()
}
