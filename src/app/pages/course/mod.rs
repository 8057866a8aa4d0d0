//! `/course`: draws the rows of the course and handles the reader's input.
//!
//! [`course`](crate::course) computes what a block shows; the components here draw it, and ask the engine for its setups.

mod cases;
mod contents;
mod cover;
mod drawing;
mod exercise;
mod fetched;
mod figure;
mod keys;
mod lists;
mod rows;
mod state;
mod text;
mod tree;

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use crate::events::listen_first;
use crate::i18n::{t_string, use_i18n};
use crate::part::part;
use crate::shell::Store;
use crate::state::Key;
use crate::worker::{Engine, Slot};
use contents::Contents;
use rows::OpenRows;
use state::{CourseState, set_presenting};

pub use fetched::load;
pub use state::KEPT;
pub use text::marked;

/// Message shown before any language is loaded.
const FAILED: &str = "The course could not be loaded. Is the page's folder complete, or the network gone? Reload to try again. 课程未能载入，请刷新重试。課程未能載入，請重新整理。";

/// Page with the contents at the left and the row at the right; embedded, a single figure.
#[component]
pub fn CoursePage() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let state = CourseState::provide(store, i18n);
    Effect::new(move || fetched::follow(state, i18n.locale()));
    listen_first(&window(), "keydown", move |event| {
        keys::turn(state, event.unchecked_ref());
    });
    // Found now: when the page is left, its contexts are gone before its cleanups run.
    let engine = Engine::get();
    on_cleanup(move || {
        engine.cancel(Slot::Setups);
        set_presenting(false);
    });
    Effect::new(move || set_presenting(store.has(Key::Present)));
    Effect::new(move |before: Option<String>| {
        let id = store.text(Key::Row);
        if before.is_some_and(|before| before != id)
            && let Some(top) = document().get_element_by_id("results")
        {
            top.scroll_into_view();
        }
        id
    });
    let opened = Memo::new(move |_| state.opened());
    Effect::new(move || {
        opened.track();
        state.ask();
    });
    let failed = part(move || {
        let failed = state.failed.get();
        failed.then(|| view! { <p class="course-wait" role="alert">{FAILED}</p> }.into_any())
    });
    // Untracked: an embedded page's address sets this before the `#`, so it never changes.
    let is_alone = untrack(|| store.has(Key::Embed));
    let label = move || t_string!(i18n, nav.course);
    let beside = (!is_alone).then(|| {
        view! {
            <nav class="course-contents" aria-label=label>
                <Contents />
            </nav>
        }
        .into_any()
    });
    // Other rows get new elements, in which nothing is typed, unfolded or ticked yet.
    let rows = |opened| view! { <OpenRows opened /> };
    view! {
        <div class="course" class:alone=is_alone>
            {beside}
            <main class="results" id="results" tabindex="-1" aria-label=label>
                {failed}
                <For each=move || opened.get() key=Clone::clone children=rows />
            </main>
        </div>
    }
}
