//! Keys of the presentation mode.

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, KeyboardEvent};

use super::state::CourseState;
use crate::state::Key;

/// Turns pages on the keys that presentation remotes send.
pub fn turn(state: CourseState, event: &KeyboardEvent) {
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    let in_field = target.is_some_and(|element| element.closest("input, select, textarea").is_ok_and(|e| e.is_some()));
    let is_presenting = untrack(|| state.store.has(Key::Present));
    if !is_presenting || in_field || event.ctrl_key() || event.alt_key() || event.meta_key() {
        return;
    }
    let [before, after] = untrack(|| {
        let (book, opened) = state.book.get().zip(state.opened())?;
        Some(book.neighbours(opened.rows.first()?))
    })
    .unwrap_or_default();
    let to = match event.key().as_str() {
        "ArrowRight" | "PageDown" => after,
        "ArrowLeft" | "PageUp" => before,
        "Escape" => return state.store.set(Key::Present, ""),
        _ => return,
    };
    if let Some(row) = to {
        event.prevent_default();
        state.turn_to(row.id);
    }
}
