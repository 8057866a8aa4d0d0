//! A kept setup: opened by a press, renamed in place, forgotten.

use leptos::html;
use leptos::prelude::*;

use super::Kept;
use super::words::{detail, title};
use crate::i18n::{t, t_string, use_i18n};
use crate::part::text;
use crate::shell::{CopyButton, Store};
use crate::state::{Draft, Named, Route, is_of_setup, setup_of};

/// Shows a setup on the plan page.
fn open(store: Store, setup: &Draft) {
    store.edit(|draft| draft.take(setup, is_of_setup));
    store.route().set(Route::Plan);
}

/// Link to a part of the page, at the address where it is open.
fn link_to(address: String) -> impl Fn() -> String + Clone {
    move || {
        let here = window().location().href().unwrap_or_default();
        let page = here.split('#').next().unwrap_or_default().to_owned();
        page + &address
    }
}

/// Field for another name of a setup, and the button that takes it.
#[component]
fn NewName(field: NodeRef<html::Input>, what: StoredValue<String>) -> impl IntoView {
    let i18n = use_i18n();
    view! {
        <input
            type="text"
            data-testid="setup-new-name"
            maxlength="80"
            node_ref=field
            aria-label=move || t_string!(i18n, setups.name)
            prop:value=move || what.get_value()
        />
        <button type="submit" class="tool">
            {t!(i18n, setups.save)}
        </button>
    }
}

/// A setup with a name.
#[component]
pub fn Row(named: Named, kept: Kept) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let setup = setup_of(&named.query).unwrap_or_default();
    let (of_words, of_press) = (setup.clone(), setup);
    let is_written = RwSignal::new(false);
    let field = NodeRef::<html::Input>::new();
    let (name, old, gone) = (named.name.clone(), named.name.clone(), named.name.clone());
    let rename = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let new = field.get_untracked().map(|field| field.value()).unwrap_or_default();
        is_written.set(false);
        kept.change(|saved| saved.rename(&old, &new));
    };
    let rename = StoredValue::new_local(rename);
    let begin = move |_| {
        is_written.update(|is| *is = !*is);
        request_animation_frame(move || {
            if let Some(field) = field.get_untracked() {
                field.select();
            }
        });
    };
    let forget = move |_| kept.change(|saved| saved.remove(&gone));
    let link = link_to(Route::Plan.fragment(&named.query));
    let label = name.clone();
    let what = StoredValue::new(name.clone());
    view! {
        <li class="setups-row" data-testid="setup-row" data-name=name.clone()>
            <button type="button" class="setups-open" data-testid="setup-open" on:click=move |_| open(store, &of_press)>
                <span class="setups-name">{label}</span>
                <span class="muted small">{text(move || format!("{}; {}", title(i18n, &of_words), detail(i18n, &of_words)).trim_end_matches("; ").to_owned())}</span>
            </button>
            <span class="setups-tools">
                <CopyButton testid="setup-link" label=|i18n| t_string!(i18n, header.copy_link) text=link />
                <button
                    type="button"
                    class="tool"
                    data-testid="setup-rename"
                    aria-label=move || t_string!(i18n, setups.rename_one, name = what.get_value()).to_string()
                    on:click=begin
                >
                    {t!(i18n, setups.rename)}
                </button>
                <button
                    type="button"
                    class="tool"
                    data-testid="setup-delete"
                    aria-label=move || t_string!(i18n, setups.delete_one, name = what.get_value()).to_string()
                    on:click=forget
                >
                    {t!(i18n, setups.delete)}
                </button>
            </span>
            <Show when=move || is_written.get()>
                <form class="setups-save" on:submit=move |event| rename.with_value(|rename| rename(event))>
                    <NewName field what />
                </form>
            </Show>
        </li>
    }
}

/// One of the latest setups.
#[component]
pub fn Latest(setup: Draft) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let (of_title, of_detail) = (setup.clone(), setup.clone());
    view! {
        <li>
            <button type="button" class="setups-open" data-testid="setup-latest" on:click=move |_| open(store, &setup)>
                <span>{text(move || title(i18n, &of_title))}</span>
                <span class="muted small">{text(move || detail(i18n, &of_detail))}</span>
            </button>
        </li>
    }
}
