use std::sync::Arc;

use leptos::attr::Attribute;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use web_sys::HtmlInputElement;

use crate::shell::{Near, Store};
use crate::state::Key;

/// The texts that an entry can be changed to by one press or key.
pub type Texts = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// What an element needs to tell that its entry may change soon: it has the focus, or the pointer is on it. Whoever
/// follows [`Store::near`] can have the answer ready.
pub fn tells(key: Key, texts: Texts) -> impl Attribute {
    let near = Store::get().near();
    let tell = move || {
        let texts = texts.clone();
        near.set(Some(Near { key, texts }));
    };
    let (entered, clicked) = (tell.clone(), tell.clone());
    // A click puts the caret somewhere, after the focus came.
    view! { <{..} on:focusin=move |_| tell() on:pointerenter=move |_| entered() on:click=move |_| clicked() /> }
}

/// What the next key makes of the text of this input, while it has the focus: a digit, or one sign less.
pub fn typed(id: &str) -> Vec<String> {
    caret()
        .filter(|caret| caret.input == id)
        .and_then(Caret::keys)
        .unwrap_or_default()
}

/// Whether a text has the focus.
pub fn is_typing() -> bool {
    caret().is_some()
}

/// Where the next key goes.
struct Caret {
    /// The id of the text's input.
    input: String,
    text: String,
    /// What is selected.
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

/// Texts of none: what has a form of its own.
pub fn none() -> Texts {
    Arc::new(Vec::new)
}
