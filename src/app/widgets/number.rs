//! Text and number fields.

use std::sync::Arc;

use leptos::ev::{KeyboardEvent, MouseEvent};
use leptos::prelude::*;

use super::field::{Field, control_id, described_by, error_of};
use super::prefetch::typed;
use crate::i18n::{t_string, use_i18n};
use crate::shell::Store;
use crate::state::Key;
use crate::words;

/// A field for text with a format of its own, such as a grid. Keeps the typed text, valid or not.
#[component]
pub fn Entry(
    /// Key of the entry.
    #[prop(into)]
    key: Key,
    /// Placeholder text.
    #[prop(optional, into)]
    placeholder: Signal<String>,
) -> impl IntoView {
    view! {
        <Field key>
            <Input key placeholder on_step=|_| () />
        </Field>
    }
}

/// A field for a whole number, typed or stepped. Keeps the typed text, valid or not.
#[component]
pub fn Number(
    /// Key of the entry.
    #[prop(into)]
    key: Key,
    /// Increment of one step.
    #[prop(default = 1)]
    step: u64,
    /// Minimum reachable by steps.
    #[prop(default = 1)]
    least: u64,
    /// Placeholder text.
    #[prop(optional, into)]
    placeholder: Signal<String>,
) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    // Steps from an empty field begin at the number that applies then.
    let next = move |up: bool| {
        let read = |text: &str| key.form().read(text).ok();
        let now = read(&store.text(key))?.as_u64();
        let now = now.or_else(|| placeholder.try_with(|own| read(own)?.as_u64())?);
        stepped(now, step, least, up)
    };
    let go = move |up: bool| next(up).into_iter().for_each(|next| store.set(key, next));
    let texts = Arc::new(move || {
        let steps = untrack(|| [true, false].map(next));
        steps.into_iter().flatten().chain(typed(&control_id(key))).collect()
    });
    let less = move || t_string!(i18n, widget.less, what = words::label(i18n, key)).to_string();
    let more = move || t_string!(i18n, widget.more, what = words::label(i18n, key)).to_string();
    view! {
        <Field key texts>
            <div class="number">
                <button type="button" tabindex="-1" aria-label=less on:click=move |_| go(false)>
                    "−"
                </button>
                <Input key placeholder on_step=go />
                <button type="button" tabindex="-1" aria-label=more on:click=move |_| go(true)>
                    "+"
                </button>
            </div>
        </Field>
    }
}

/// Text input; the arrow keys step up and down.
#[component]
fn Input(key: Key, placeholder: Signal<String>, on_step: impl Fn(bool) + 'static) -> impl IntoView {
    let store = Store::get();
    let error = error_of(key);
    let text = Memo::new(move |_| store.text(key));
    // True from the focus to the press that gave it. The press puts the caret somewhere after the focus, so the text is
    // selected when it ends; where Tab gives the focus, the browser selects the text.
    let is_new = StoredValue::new(false);
    let on_key = move |event: KeyboardEvent| {
        is_new.set_value(false);
        let up = match event.key().as_str() {
            "ArrowUp" => true,
            "ArrowDown" => false,
            _ => return,
        };
        event.prevent_default();
        on_step(up);
    };
    let on_click = move |event: leptos::ev::Targeted<MouseEvent, web_sys::HtmlInputElement>| {
        store.end_typing();
        if is_new.get_value() {
            is_new.set_value(false);
            event.target().select();
        }
    };
    view! {
        <input
            id=control_id(key)
            type="text"
            inputmode="decimal"
            autocomplete="off"
            placeholder=crate::part::text(move || placeholder.get())
            data-testid=key.name()
            aria-invalid=crate::part::text(move || error.get().is_some().to_string())
            aria-describedby=described_by(key)
            prop:value=crate::part::text(move || text.get())
            on:input:target=move |ev| store.type_text(key, ev.target().value())
            on:keydown=on_key
            on:focus=move |_| {
                is_new.set_value(true);
                store.end_typing();
            }
            on:click:target=on_click
        />
    }
}

/// Returns the next multiple of `step` in a direction from a number, or from 0, but at least `least`.
pub fn stepped(now: Option<u64>, step: u64, least: u64, up: bool) -> Option<String> {
    let now = now.unwrap_or_default();
    let next = match up {
        true => (now / step).checked_add(1)?.checked_mul(step)?,
        false => now.saturating_sub(1) / step * step,
    };
    Some(next.max(least).to_string())
}
