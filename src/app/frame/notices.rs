//! Notice about invalid parts of the URL.

use leptos::prelude::*;

use vramscope_engine::suggest::suggest;

use crate::i18n::{Words, t, t_string, use_i18n};
use crate::shell::Store;
use crate::state::{Key, UrlProblem};

/// Lists the parts of the URL that could not be used; valid parts were kept.
#[component]
pub fn Notices() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let problems = store.problems();
    view! {
        <Show when=move || problems.with(|p| !p.is_empty())>
            <section class="notice" role="alert" data-testid="url-problems">
                <p>{t!(i18n, url.kept)}</p>
                <ul>
                    {move || {
                        problems.get().iter().map(|p| view! { <li>{describe(i18n, p)}</li> }).collect_view()
                    }}
                </ul>
                <button type="button" class="tool" on:click=move |_| problems.set(Vec::new())>
                    {t!(i18n, url.dismiss)}
                </button>
            </section>
        </Show>
    }
}

fn describe(i18n: Words, problem: &UrlProblem) -> String {
    match problem {
        UrlProblem::UnknownPage(path) => t_string!(i18n, url.unknown_page, path = shorten(path)).to_string(),
        UrlProblem::UnknownKey(name) => match suggest(name, &Key::all().map(Key::name).collect::<Vec<_>>()).first() {
            Some(near) => t_string!(i18n, url.unknown_key_near, name = shorten(name), near = *near).to_string(),
            None => t_string!(i18n, url.unknown_key, name = shorten(name)).to_string(),
        },
        UrlProblem::Garbled(key) => t_string!(i18n, url.garbled, name = key.name()).to_string(),
        UrlProblem::Repeated(key) => t_string!(i18n, url.repeated, name = key.name()).to_string(),
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(60).collect()
}
