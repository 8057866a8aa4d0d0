use std::sync::Arc;

use leptos::attr::Attribute;
use leptos::prelude::*;

use crate::shell::{Near, Store};
use crate::state::Key;

/// The texts that an entry can be changed to by one press.
pub type Texts = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// What an element needs to tell that its entry may change soon: it has the focus, or the pointer is on it. Whoever
/// follows [`Store::near`] can have the answer ready.
pub fn tells(key: Key, texts: Texts) -> impl Attribute {
    let near = Store::get().near();
    let tell = move || {
        let texts = texts.clone();
        near.set(Some(Near { key, texts }));
    };
    let entered = tell.clone();
    view! { <{..} on:focusin=move |_| tell() on:pointerenter=move |_| entered() /> }
}

/// Texts of none: what people type.
pub fn none() -> Texts {
    Arc::new(Vec::new)
}
