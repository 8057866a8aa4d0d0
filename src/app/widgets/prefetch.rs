//! Predicts the next values of the focused entry, for prefetching.

use std::sync::Arc;

use leptos::attr::Attribute;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use web_sys::HtmlInputElement;

use crate::shell::{Prefetch, Store};
use crate::state::Key;

/// Texts that one click or key press would change an entry to.
pub type Texts = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Announces through [`Store::prefetch`] that an entry may change soon, because it has the focus or the pointer, so that
/// the answer can be prefetched.
pub fn tells(key: Key, texts: Texts) -> impl Attribute {
    let prefetch = Store::get().prefetch();
    let tell = move || {
        let texts = texts.clone();
        prefetch.set(Some(Prefetch { key, texts }));
    };
    let (entered, clicked) = (tell.clone(), tell.clone());
    // A click moves the caret after the focus event.
    view! { <{..} on:focusin=move |_| tell() on:pointerenter=move |_| entered() on:click=move |_| clicked() /> }
}

/// Texts that the next key press may produce in this input while it has the focus: any digit typed, or one character
/// deleted.
pub fn typed(id: &str) -> Vec<String> {
    caret()
        .filter(|caret| caret.input == id)
        .and_then(Caret::keys)
        .unwrap_or_default()
}

/// Returns true if a text field has the focus.
pub fn is_typing() -> bool {
    caret().is_some()
}

/// Caret of the focused text field.
struct Caret {
    /// Element id of the input.
    input: String,
    text: String,
    /// Start of the selection.
    begin: usize,
    end: usize,
}

fn caret() -> Option<Caret> {
    let input: HtmlInputElement = document().active_element()?.dyn_into().ok()?;
    Some(Caret {
        input: input.id(),
        text: input.value(),
        begin: input.selection_start().ok()?? as usize,
        end: input.selection_end().ok()?? as usize,
    })
}

impl Caret {
    fn keys(self) -> Option<Vec<String>> {
        let Self { text, begin, end, .. } = self;
        let before = text.get(..begin)?;
        let after = text.get(end..)?;
        let kept = if begin == end { begin.saturating_sub(1) } else { begin };
        let less = [before.get(..kept)?, after].concat();
        let digits = DIGITS.map(|digit| [before, digit, after].concat());
        Some([less].into_iter().chain(digits).collect())
    }
}

const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// Predicts nothing, for entries with a format of their own.
pub fn none() -> Texts {
    Arc::new(Vec::new)
}
