//! Texts with `code` and **strong** words.

use leptos::prelude::*;

use crate::course::{Span, spans};

/// Draws a text with its markup.
pub fn marked(text: &str) -> AnyView {
    let span = |span| match span {
        Span::Plain(words) => words.to_owned().into_any(),
        Span::Code(words) => view! { <code>{words.to_owned()}</code> }.into_any(),
        Span::Strong(words) => view! { <strong>{words.to_owned()}</strong> }.into_any(),
    };
    spans(text).into_iter().map(span).collect_view().into_any()
}

/// Draws texts as paragraphs.
pub fn paragraphs(texts: impl Iterator<Item = &'static str>) -> AnyView {
    let paragraph = |text| view! { <p>{marked(text)}</p> };
    texts.map(paragraph).collect_view().into_any()
}
