//! Button that copies a text to the clipboard.

use std::time::Duration;

use leptos::prelude::*;

use super::clipboard;
use crate::events::after;
use crate::i18n::{Words, t_string, use_i18n};

/// A button that copies a text to the clipboard and says whether it could.
#[component]
pub fn CopyButton(
    testid: &'static str,
    /// Label of the button.
    label: fn(Words) -> &'static str,
    /// Text to copy, read at the moment of the click.
    text: impl Fn() -> String + 'static,
) -> impl IntoView {
    let i18n = use_i18n();
    // `None` but for a moment after a click.
    let copied = RwSignal::new(None);
    let copy = move |_| {
        clipboard::copy(text(), move |is_copied| {
            copied.try_set(Some(is_copied));
            after(Duration::from_millis(1600), move || _ = copied.try_set(None));
        });
    };
    view! {
        <button type="button" class="tool" on:click=copy data-testid=testid>
            <span aria-live="polite">
                {move || match copied.get() {
                    Some(true) => t_string!(i18n, header.copied),
                    Some(false) => t_string!(i18n, header.not_copied),
                    None => label(i18n),
                }}
            </span>
        </button>
    }
}
