use leptos::prelude::*;

use super::embed::{self, Embedded};
use super::header::Header;
use super::install::SingleFileLink;
use super::notices::Notices;
use super::update::UpdateNotice;
use super::{Given, MyCard, Store, fault, language, theme};
use crate::chunk::{Later, LaterPage};
use crate::i18n::{Language, Words, t, use_i18n};
use crate::pages::plan::PlanPage;
use crate::part::part;
use crate::state::Route;
use crate::worker::Engine;

/// The whole page, in a language to begin with.
pub fn app(language: Language) -> impl IntoView {
    let i18n = Words::provide(language);
    let store = Store::provide();
    Engine::provide();
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

/// The page with header and footer.
#[component]
fn WholePage() -> impl IntoView {
    let i18n = use_i18n();
    view! {
        <a class="skip" href="#results" on:click=skip_to_results>
            {t!(i18n, header.skip)}
        </a>
        <Header />
        <UpdateNotice />
        <Notices />
        <Routed />
        <footer class="foot">
            <p>{t!(i18n, foot.private)}</p>
            <p>{t!(i18n, foot.exact)}</p>
            <SingleFileLink />
        </footer>
    }
}

/// The page that the address names; the first page where it names none that is there.
#[component]
pub fn Routed() -> impl IntoView {
    let store = Store::get();
    let route = Memo::new(move |_| store.route().get());
    part(move || {
        Some(match route.get() {
            Route::Attention => view! { <LaterPage of=Later::Attention /> }.into_any(),
            Route::Benchmarks => view! { <LaterPage of=Later::Benchmarks /> }.into_any(),
            Route::Course => view! { <LaterPage of=Later::Course /> }.into_any(),
            Route::Diagnose => view! { <LaterPage of=Later::Diagnose /> }.into_any(),
            Route::Plan => view! { <PlanPage /> }.into_any(),
            Route::Recorded => view! { <LaterPage of=Later::Recorded /> }.into_any(),
            Route::Recommend => view! { <LaterPage of=Later::Recommend /> }.into_any(),
        })
    })
}

/// The fragment holds the state, so a plain link into the page would lose it.
fn skip_to_results(event: leptos::ev::MouseEvent) {
    event.prevent_default();
    if let Some(results) = document().get_element_by_id("results") {
        results.scroll_into_view();
        let focusable: web_sys::HtmlElement = wasm_bindgen::JsCast::unchecked_into(results);
        // Focus is a comfort; where it is refused the view has moved all the same.
        focusable.focus().ok();
    }
}
