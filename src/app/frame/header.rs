//! Page header: name, routes, undo, the menus of sharing, theme and language.

use leptos::prelude::*;

use super::setups::SetupsMenu;
use super::share::ShareMenu;
use super::steps::UndoButtons;
use crate::i18n::{Locale, Words, phrases, t, t_string, use_i18n};
use crate::part::text;
use crate::shell::{CurrentTheme, Store, Theme, language};
use crate::state::Route;

/// Header with name, routes, undo, and the menus of sharing, theme and language.
#[component]
pub fn Header() -> impl IntoView {
    let i18n = use_i18n();
    view! {
        <header class="head">
            <h1 class="brand">
                <Mark />
                "VRAMscope"
            </h1>
            <Pages />
            <p class="tagline">{t!(i18n, page.tagline)}</p>
            <div class="head-tools">
                <UndoButtons />
                <SetupsMenu />
                <ShareMenu />
                <ThemeMenu />
                <LanguageMenu />
            </div>
        </header>
    }
}

/// Links to all routes, each with the current entries.
#[component]
fn Pages() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let query = Memo::new(move |_| store.address().draft.to_query());
    let link = move |route: Route| {
        let here = move || store.route().get() == route;
        let address = move || query.with(|query| route.fragment(query));
        let words = move || phrases::nav::named(route.name()).map(|place| i18n.phrase(place));
        view! {
            <a href=address aria-current=move || here().then_some("page") data-testid=format!("nav{}", route.path())>
                {words}
            </a>
        }
    };
    let links: Vec<_> = Route::ALL.iter().copied().map(link).collect();
    view! {
        <nav class="pages" aria-label=t!(i18n, nav.label)>
            {links}
        </nav>
    }
}

/// Logo: the memory of a training step, rising to a peak and falling.
#[component]
fn Mark() -> impl IntoView {
    view! {
        <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
            <path class="mark-high" d="M3 27V17h6v-5h6V5h5v8h4v6h5v8z" />
            <path class="mark-low" d="M3 27v-5h9v-3h8v3h9v5z" />
        </svg>
    }
}

#[component]
fn ThemeMenu() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let current = CurrentTheme::get();
    let pick = move |name: String| {
        if let Some(theme) = Theme::named(&name) {
            current.choose(store, theme);
        }
    };
    view! {
        <label class="tool-select">
            <span class="offscreen">{t!(i18n, header.theme)}</span>
            <select
                data-testid="theme"
                prop:value=text(move || current.read().name().to_owned())
                on:change:target=move |ev| pick(ev.target().value())
            >
                {Theme::ALL
                    .map(|theme| {
                        view! {
                            <option value=theme.name() selected=move || current.read() == theme>
                                {text(move || theme_label(i18n, theme))}
                            </option>
                        }
                    })}
            </select>
        </label>
    }
}

fn theme_label(i18n: Words, theme: Theme) -> String {
    match theme {
        Theme::Auto => t_string!(i18n, header.theme_auto).to_string(),
        Theme::Light => t_string!(i18n, header.theme_light).to_string(),
        Theme::Dark => t_string!(i18n, header.theme_dark).to_string(),
    }
}

#[component]
fn LanguageMenu() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let pick = move |name: String| {
        if let Some(locale) = Locale::named(&name) {
            language::choose(store, i18n, locale);
        }
    };
    view! {
        <label class="tool-select">
            <span class="offscreen">{t!(i18n, header.language)}</span>
            <select
                data-testid="language"
                prop:value=text(move || i18n.locale().as_str().to_owned())
                on:change:target=move |ev| pick(ev.target().value())
            >
                {Locale::all()
                    .map(|locale| {
                        view! {
                            <option
                                value=locale.as_str()
                                lang=locale.as_str()
                                selected=move || i18n.locale() == locale
                            >
                                {locale.own_name()}
                            </option>
                        }
                    })
                    .collect_view()}
            </select>
        </label>
    }
}
