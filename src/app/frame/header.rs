//! Page header: name, routes, undo, the menus of sharing, theme and language.

use leptos::ev::KeyboardEvent;
use leptos::prelude::*;

use super::find::FindButton;
use super::menu::{Menu, close, on_key, on_leave};
use super::setups::SetupsMenu;
use super::share::ShareMenu;
use super::steps::UndoButtons;
use crate::i18n::{Locale, Words, phrases, t, t_string, use_i18n};
use crate::part::text;
use crate::shell::{CurrentTheme, Store, Theme, language};
use crate::state::{Address, Route};

/// Header with name, routes, undo, and the menus of sharing, theme and language.
#[component]
pub fn Header() -> impl IntoView {
    let i18n = use_i18n();
    let route = Store::get().route();
    // On a phone pages and tools are behind a button.
    let is_open = RwSignal::new(false);
    Effect::new(move || {
        route.track();
        is_open.set(false);
    });
    let on_key = move |event: KeyboardEvent| {
        if event.key() == "Escape" {
            is_open.set(false);
        }
    };
    view! {
        <header class="head" class:head-open=move || is_open.get() on:keydown=on_key>
            <h1 class="brand">
                <Mark />
                "VRAMscope"
            </h1>
            <button
                type="button"
                class="tool head-toggle"
                data-testid="head-menu"
                aria-expanded=text(move || is_open.get().to_string())
                aria-label=text(move || t_string!(i18n, nav.menu).to_owned())
                on:click=move |_| is_open.update(|open| *open = !*open)
            >
                <svg viewBox="0 0 16 16" aria-hidden="true">
                    <path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11" />
                </svg>
            </button>
            <div class="head-menu">
                <Pages />
                <p class="tagline">{t!(i18n, page.tagline)}</p>
                <div class="head-tools">
                    <FindButton />
                    <UndoButtons />
                    <SetupsMenu />
                    <ShareMenu />
                    <ThemeMenu />
                    <LanguageMenu />
                </div>
            </div>
        </header>
    }
}

/// Links to all places, each with the current entries: five in sight, the others behind.
#[component]
fn Pages() -> impl IntoView {
    let i18n = use_i18n();
    let menu = Menu::new();
    view! {
        <nav class="pages" aria-label=t!(i18n, nav.label)>
            {Route::MENU.map(|route| view! { <PageLink route /> })}
            <details class="menu pages-more" node_ref=menu on:keydown=on_key(menu) on:focusout=on_leave(menu)>
                <summary data-testid="nav-more">{t!(i18n, nav.more)}</summary>
                <ul on:click=move |_| close(menu)>
                    {Route::BEHIND.map(|route| view! { <li><PageLink route /></li> })}
                </ul>
            </details>
        </nav>
    }
}

/// Link to a route.
#[component]
fn PageLink(route: Route) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let here = move || store.route().get().is_part_of(route);
    let address = move || {
        let draft = store.address().draft;
        Address { route, draft }.to_fragment()
    };
    let words = move || phrases::nav::named(route.name()).map(|place| i18n.phrase(place));
    view! {
        <a href=address aria-current=move || here().then_some("page") data-testid=format!("nav{}", route.path())>
            {words}
        </a>
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
