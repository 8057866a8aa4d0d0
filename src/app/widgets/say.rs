//! Controls that stand within a sentence: as wide as what they hold, named by what screen readers say of them.

use leptos::ev::KeyboardEvent;
use leptos::prelude::*;

use super::field::error_of;
use super::number::stepped;
use crate::i18n::use_i18n;
use crate::part::text;
use crate::shell::Store;
use crate::state::Key;
use crate::words;

/// Element and test id of a key's control in the sentence; the one beside the results has the key's own.
pub fn say_id(key: Key) -> String {
    format!("say-{}", key.name())
}

/// A whole number, typed or stepped by the arrow keys.
#[component]
pub fn SayNumber(
    /// Key of the entry.
    #[prop(into)]
    key: Key,
    /// Increment of one step.
    #[prop(default = 1)]
    step: u64,
    /// What applies while nothing is entered.
    #[prop(optional, into)]
    placeholder: Signal<String>,
) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let error = error_of(key);
    // True from the focus to the press that gave it.
    let is_new = StoredValue::new(false);
    let on_key = move |event: KeyboardEvent| {
        is_new.set_value(false);
        let is_up = match event.key().as_str() {
            "ArrowUp" => true,
            "ArrowDown" => false,
            _ => return,
        };
        event.prevent_default();
        let read = |text: &str| key.form().read(text).ok()?.as_u64();
        let now = read(&store.text(key)).or_else(|| placeholder.with_untracked(|own| read(own)));
        stepped(now, step, 1, is_up)
            .into_iter()
            .for_each(|next| store.set(key, next));
    };
    view! {
        <input
            id=say_id(key)
            class="say-field say-number"
            type="text"
            inputmode="numeric"
            autocomplete="off"
            data-testid=say_id(key)
            aria-label=text(move || words::label(i18n, key))
            aria-invalid=text(move || error.get().is_some().to_string())
            placeholder=text(move || placeholder.get())
            prop:value=text(move || store.text(key))
            on:input:target=move |ev| store.type_text(key, ev.target().value())
            on:focus:target=move |ev| {
                is_new.set_value(true);
                store.end_typing();
                ev.target().select();
            }
            on:click:target=move |ev| {
                // The press that gave the focus has put the caret where it was aimed at.
                if is_new.try_update_value(std::mem::take).unwrap_or_default() {
                    ev.target().select();
                }
            }
            on:keydown=on_key
        />
    }
}

/// A menu for one of several choices.
#[component]
pub fn SayChoice(
    /// Key of the entry.
    #[prop(into)]
    key: Key,
    /// Choices that currently apply.
    #[prop(into)]
    choices: Signal<Vec<&'static str>>,
) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let used = Memo::new(move |_| store.reading().with(|r| r.good.get(key).to_owned()));
    let option = move |choice: &'static str| {
        view! {
            <option value=choice selected=move || used.with(|used| used == choice)>
                {text(move || words::choice(i18n, key, choice))}
            </option>
        }
    };
    view! {
        <select
            id=say_id(key)
            class="say-field"
            data-testid=say_id(key)
            aria-label=text(move || words::label(i18n, key))
            on:change:target=move |ev| store.set(key, ev.target().value())
        >
            {move || choices.get().into_iter().map(option).collect_view()}
        </select>
    }
}
