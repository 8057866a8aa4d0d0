//! Files on screen, each of which can be taken out again.

use leptos::prelude::*;

use super::Looked;
use super::begin::take;
use super::phrases::Phrases;
use crate::i18n::use_i18n;
use crate::part::{part, text};
use crate::widgets::OpenFiles;
use crate::worker::launched::LaunchText;

/// Names of the files, and a button that adds one.
#[component]
pub fn Files() -> impl IntoView {
    let phrases = Phrases::of(use_i18n());
    let looked = Looked::get();
    let names = part(move || {
        let all = looked.texts().into_iter().enumerate();
        let all: Vec<_> = all.map(|(place, file)| view! { <Chip place file /> }).collect();
        Some(view! { <ul class="launch-files">{all}</ul> }.into_any())
    });
    view! {
        <div class="launch-tools">
            {names}
            <OpenFiles
                label=phrases.live("add").into_any()
                testid="launch-add"
                multiple=true
                take=take(looked)
            />
        </div>
    }
}

/// Name of a file; of a text without one, what it is.
pub fn name_of(phrases: Phrases, file: &LaunchText) -> String {
    match file.name.as_str() {
        "" => phrases.now().word("pasted"),
        name => name.to_owned(),
    }
}

#[component]
fn Chip(place: usize, file: LaunchText) -> impl IntoView {
    let phrases = Phrases::of(use_i18n());
    let looked = Looked::get();
    let (shown, removed) = (file.clone(), file);
    let remove = move |_| {
        looked.edit(|open| {
            if place < open.texts.len() {
                open.texts.remove(place);
            }
        });
    };
    view! {
        <li class="launch-file">
            <span class="launch-file-name">{text(move || name_of(phrases, &shown))}</span>
            <button
                type="button"
                data-testid="launch-remove"
                aria-label=text(move || phrases.now().say("remove", &[("name", &name_of(phrases, &removed))]))
                on:click=remove
            >
                "×"
            </button>
        </li>
    }
}
