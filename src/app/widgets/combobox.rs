//! Searchable list for one of many choices.

mod search;

use leptos::prelude::*;

use super::field::{Field, control_id, described_by};
use super::say::say_id;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::text;
use crate::shell::Store;
use crate::state::Key;
use crate::words;
pub use search::TakesOther;
use search::{Search, option_id};

/// A choice of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComboOption {
    /// Value to store.
    pub value: String,
    /// Detail shown at the right, such as a card's memory.
    pub detail: String,
    /// Words by which it is found.
    pub words: String,
    /// Group heading.
    pub group: String,
}

/// Searchable list.
#[component]
pub fn Combobox(
    /// Key of the entry.
    key: Key,
    /// All choices, grouped.
    #[prop(into)]
    options: Signal<Vec<ComboOption>>,
    /// The engine's error about the current choice.
    #[prop(into)]
    error: Signal<Option<String>>,
    /// What takes any other text, and is told while one is typed; without it, only the choices are taken.
    #[prop(optional)]
    other: Option<TakesOther>,
    /// True within a sentence: without label, help and message of its own.
    #[prop(optional)]
    inline: bool,
    /// Shown in place of the entry while it does not apply.
    #[prop(optional, into)]
    instead: Option<Signal<Option<String>>>,
) -> impl IntoView {
    let i18n = use_i18n();
    let (id, testid) = match inline {
        true => (say_id(key), say_id(key)),
        false => (control_id(key), key.name().to_owned()),
    };
    let name = move || inline.then(|| words::label(i18n, key));
    let described = (!inline).then(|| described_by(key));
    let search = Search {
        key,
        store: Store::get(),
        options,
        other,
        typed: RwSignal::new(None),
        marked: RwSignal::new(0),
    };
    let list = format!("list-{id}");
    let shown = move || {
        search
            .typed
            .get()
            .filter(|t| !t.is_empty())
            .or_else(|| instead?.get())
            .unwrap_or_else(|| search.store.text(key))
    };
    let control = view! {
            <div class="combo" class:say-combo=inline>
                <input
                    id=id
                    class:say-field=inline
                    type="text"
                    role="combobox"
                    autocomplete="off"
                    spellcheck="false"
                    data-testid=testid
                    aria-label=name
                    aria-autocomplete="list"
                    aria-controls=list.clone()
                    aria-expanded=text(move || search.is_open().to_string())
                    aria-activedescendant=move || search.is_open().then(|| option_id(key, search.marked.get()))
                    aria-invalid=text(move || error.with(Option::is_some).to_string())
                    aria-describedby=described
                    prop:value=shown
                    on:focus:target=move |ev| ev.target().select()
                    on:click:target=move |ev| pressed(search, &ev.target())
                    on:input:target=move |ev| search.narrow(ev.target().value())
                    on:keydown=move |event| search.on_key(event)
                    on:blur=move |_| search.leave()
                />
                <Show when=move || search.is_open()>
                    <Options search id=list.clone() />
                </Show>
            </div>
            <ErrorLine error />
    };
    match inline {
        true => control.into_any(),
        false => view! { <Field key>{control.into_any()}</Field> }.into_any(),
    }
}

/// Opens the list by a press on the field.
fn pressed(search: Search, field: &web_sys::HtmlInputElement) {
    if !search.is_open() {
        search.open();
        // The press has put the caret where it was aimed at.
        field.select();
    }
}

/// The engine's error about the choice, below it.
#[component]
fn ErrorLine(error: Signal<Option<String>>) -> impl IntoView {
    view! {
        <Show when=move || error.with(Option::is_some)>
            <p class="field-error" role="alert">
                {text(move || error.get().unwrap_or_default())}
            </p>
        </Show>
    }
}

#[component]
fn Options(search: Search, id: String) -> impl IntoView {
    let i18n = use_i18n();
    let rows = move || {
        let mut group = String::new();
        let mut rows = Vec::new();
        for (place, option) in search.found().into_iter().enumerate() {
            if option.group != group {
                group.clone_from(&option.group);
                rows.push(view! { <li class="combo-group" role="presentation">{group.clone()}</li> }.into_any());
            }
            rows.push(view! { <OptionRow search place option /> }.into_any());
        }
        if rows.is_empty() {
            rows.push(view! { <li class="combo-none">{t!(i18n, widget.nothing_found)}</li> }.into_any());
        }
        rows
    };
    view! {
        <ul class="combo-list" role="listbox" id=id>
            {rows}
        </ul>
    }
}

#[component]
fn OptionRow(search: Search, place: usize, option: ComboOption) -> impl IntoView {
    let i18n = use_i18n();
    let ComboOption { value, mut detail, .. } = option;
    if search.is_other(&value) {
        detail = t_string!(i18n, widget.other).to_owned();
    }
    let label = value.clone();
    let marked = move || search.marked.get() == place;
    // Mouse down instead of click: the click would arrive after the field has lost its focus.
    let pick = move |event: leptos::ev::MouseEvent| {
        event.prevent_default();
        search.pick(&value);
    };
    view! {
        <li
            id=option_id(search.key, place)
            class="combo-option"
            class:combo-marked=marked
            role="option"
            aria-selected=text(move || marked().to_string())
            on:mousedown=pick
        >
            <span>{label}</span>
            <span class="combo-detail">{detail}</span>
        </li>
    }
}
