//! Root component of the page.

use leptos::prelude::*;

use super::embed::{self, Embedded};
use super::find::{FindPlace, follow_find};
use super::header::Header;
use super::install::SingleFileLink;
use super::notices::Notices;
use super::unknown::UnknownPlace;
use super::update::UpdateNotice;
use crate::i18n::{Language, Words, phrases, t, use_i18n};
use crate::lazy::{Lazy, LazyPage, LazyPart};
use crate::models::Models;
use crate::pages::plan::PlanPage;
use crate::part::part;
use crate::shell::{Given, MyCard, Store, fault, language, theme};
use crate::state::Route;
use crate::widgets::{Intake, keep_help_aside};
use crate::worker::Engine;

/// Builds the whole page, initially in this language.
pub fn app(language: Language) -> impl IntoView {
    let i18n = Words::provide(language);
    let store = Store::provide();
    Engine::provide();
    Models::provide();
    MyCard::provide();
    Given::provide();
    language::follow(store, i18n);
    theme::follow(store);
    fault::follow(i18n);
    let wanted = Memo::new(move |_| embed::part(store));
    part(move || {
        Some(match wanted.get() {
            Some(part) => view! { <Embedded part /> }.into_any(),
            None => view! { <WholePage /> }.into_any(),
        })
    })
}

/// Page with header and footer.
#[component]
fn WholePage() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    keep_help_aside();
    Intake::get().follow();
    follow_find();
    view! {
        <a class="skip" href="#results" on:click=skip_to_results>
            {t!(i18n, header.skip)}
        </a>
        <Show when=move || store.route().get() == Route::Plan>
            <a class="skip" href="#say-model" on:click=skip_to_setup>
                {t!(i18n, header.skip_to_setup)}
            </a>
        </Show>
        <Header />
        <UpdateNotice />
        <Notices />
        <Heading />
        <Routed />
        <LaunchPlace />
        <UnknownPlace />
        <FindPlace />
        <footer class="foot">
            <p>{t!(i18n, foot.private)}</p>
            <p>{t!(i18n, foot.exact)}</p>
            <SingleFileLink />
        </footer>
    }
}

/// Title of a page, in one form on all of them. The planner has none: it begins with its question.
#[component]
fn Heading() -> impl IntoView {
    let i18n = use_i18n();
    let route = Store::get().route();
    let place = Memo::new(move |_| phrases::heading::named(route.get().name()).map(|place| i18n.phrase(place)));
    part(move || {
        let words = place.get()?;
        Some(view! { <h2 class="page-title" data-testid="heading">{words}</h2> }.into_any())
    })
}

/// Place of the files that start a run, which are over the page while they are looked at.
#[component]
fn LaunchPlace() -> impl IntoView {
    let launch = Given::get().launch;
    let is_open = Memo::new(move |_| launch.with(Option::is_some));
    view! {
        <Show when=move || is_open.get()>
            <LazyPart of=Lazy::Launch />
        </Show>
    }
}

/// Page of the current route; an unknown route shows the first page.
#[component]
pub fn Routed() -> impl IntoView {
    let store = Store::get();
    let route = Memo::new(move |_| store.route().get());
    part(move || {
        Some(match route.get() {
            Route::Plan => view! { <PlanPage /> }.into_any(),
            route => view! { <LazyPage of=route /> }.into_any(),
        })
    })
}

fn skip_to_results(event: leptos::ev::MouseEvent) {
    skip_to("#results", event);
}

fn skip_to_setup(event: leptos::ev::MouseEvent) {
    skip_to(".sentence input", event);
}

/// Scrolls by script: following a plain link would replace the fragment, which holds the state.
fn skip_to(selector: &str, event: leptos::ev::MouseEvent) {
    event.prevent_default();
    if let Ok(Some(element)) = document().query_selector(selector) {
        element.scroll_into_view();
        let focusable: web_sys::HtmlElement = wasm_bindgen::JsCast::unchecked_into(element);
        // Ignore a refused focus: the view has scrolled anyway.
        focusable.focus().ok();
    }
}
