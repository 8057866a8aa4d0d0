use leptos::ev::KeyboardEvent;
use leptos::prelude::*;

use super::field::{Field, control_id, error_id, error_of};
use crate::i18n::{t_string, use_i18n};
use crate::shell::Store;
use crate::state::Key;
use crate::words;

/// A number, typed or stepped. The text stays as the person typed it, right or wrong.
#[component]
pub fn Number(
    /// The entry.
    key: Key,
    /// What one step adds or takes away.
    #[prop(default = 1)]
    step: u64,
    /// The least that the steps reach.
    #[prop(default = 1)]
    least: u64,
    /// What is shown while nothing is entered.
    #[prop(optional)]
    placeholder: &'static str,
) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let error = error_of(key);
    let go = move |up: bool| {
        if let Some(next) = stepped(&store.text(key), step, least, up) {
            store.set(key, next);
        }
    };
    let on_key = move |event: KeyboardEvent| {
        let up = match event.key().as_str() {
            "ArrowUp" => true,
            "ArrowDown" => false,
            _ => return,
        };
        event.prevent_default();
        go(up);
    };
    let describe = move |more: bool| match more {
        true => t_string!(i18n, widget.more, what = words::label(i18n, key)).to_string(),
        false => t_string!(i18n, widget.less, what = words::label(i18n, key)).to_string(),
    };
    view! {
        <Field key>
            <div class="number">
                <button type="button" tabindex="-1" aria-label=move || describe(false) on:click=move |_| go(false)>
                    "−"
                </button>
                <input
                    id=control_id(key)
                    type="text"
                    inputmode="numeric"
                    autocomplete="off"
                    placeholder=placeholder
                    data-testid=key.name()
                    aria-invalid=move || error.get().is_some().to_string()
                    aria-describedby=error_id(key)
                    prop:value=move || store.text(key)
                    on:input:target=move |ev| store.set(key, ev.target().value())
                    on:keydown=on_key
                />
                <button type="button" tabindex="-1" aria-label=move || describe(true) on:click=move |_| go(true)>
                    "+"
                </button>
            </div>
        </Field>
    }
}

/// The next multiple of `step` in a direction, not below `least`.
fn stepped(text: &str, step: u64, least: u64, up: bool) -> Option<String> {
    let now: u64 = match text.trim() {
        "" => 0,
        text => text.replace([',', ' '], "").parse().ok()?,
    };
    let next = match up {
        true => (now / step).checked_add(1)?.checked_mul(step)?,
        false => now.saturating_sub(1) / step * step,
    };
    Some(next.max(least).to_string())
}
