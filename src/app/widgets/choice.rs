//! Choices: a menu and a segmented control.

use std::sync::Arc;

use leptos::prelude::*;

use super::field::{ErrorText, Field, control_id, described_by, error_of};
use super::help::{Help, HelpButton};
use super::prefetch::tells;
use crate::i18n::use_i18n;
use crate::part::{text, truth};
use crate::shell::Store;
use crate::state::Key;
use crate::words;

/// Menu for one of several choices.
#[component]
pub fn Select(
    /// Key of the entry.
    #[prop(into)]
    key: Key,
    /// Choices that currently apply.
    #[prop(into)]
    choices: Signal<Vec<&'static str>>,
) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let error = error_of(key);
    let used = Memo::new(move |_| store.reading().with(|r| r.good.get(key).to_owned()));
    // The control may be gone by the time that its next values are asked for.
    let texts = Arc::new(move || {
        let choices = choices.try_get_untracked().unwrap_or_default();
        choices.into_iter().map(str::to_owned).collect()
    });
    view! {
        <Field key texts>
            <select
                id=control_id(key)
                data-testid=key.name()
                aria-invalid=text(move || error.get().is_some().to_string())
                aria-describedby=described_by(key)
                on:change:target=move |ev| store.set(key, ev.target().value())
            >
                {move || {
                    choices
                        .get()
                        .into_iter()
                        .map(|choice| {
                            view! {
                                <option value=choice selected=move || used.with(|used| used == choice)>
                                    {text(move || words::choice(i18n, key, choice))}
                                </option>
                            }
                        })
                        .collect_view()
                }}
            </select>
        </Field>
    }
}

/// Segmented control for one of a few choices.
#[component]
pub fn Segments(
    /// Key of the entry.
    #[prop(into)]
    key: Key,
) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let error = error_of(key);
    let open = RwSignal::new(false);
    let used = Memo::new(move |_| store.reading().with(|r| r.good.get(key).to_owned()));
    let label_id = move || format!("label-{}", key.name());
    view! {
        <div
            class="field"
            class:field-wrong=truth(move || error.get().is_some())
            role="radiogroup"
            aria-labelledby=label_id()
            aria-describedby=described_by(key)
            {..tells(key, Arc::new(move || key.choices().iter().map(|choice| choice.to_string()).collect()))}
        >
            <div class="field-head">
                <span class="field-label" id=label_id()>
                    {text(move || words::label(i18n, key))}
                </span>
                <HelpButton key open />
            </div>
            <Help key open />
            <div class="segments-row" data-testid=key.name()>
                {key
                    .choices()
                    .iter()
                    .map(|choice| {
                        view! {
                            <label class="segment" class:segment-on=truth(move || used.with(|used| used == choice))>
                                <input
                                    type="radio"
                                    name=key.name()
                                    value=*choice
                                    prop:checked=move || used.with(|used| used == choice)
                                    on:change=move |_| store.set(key, *choice)
                                />
                                <span>{text(move || words::choice(i18n, key, choice))}</span>
                            </label>
                        }
                    })
                    .collect_view()}
            </div>
            <ErrorText key error />
        </div>
    }
}
