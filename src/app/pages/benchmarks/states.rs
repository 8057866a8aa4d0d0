//! Messages shown when the list of published records is missing.

use leptos::prelude::*;

use super::page::{BenchmarksState, Published};
use crate::benchmarks::Fetched;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::part;

/// Explains why the list holds no published records, and what to do about it.
#[component]
pub fn State() -> impl IntoView {
    let i18n = use_i18n();
    let page = BenchmarksState::get();
    part(move || {
        let (name, words, again) = said(i18n, &page.published.get())?;
        let locked = name == "closed";
        let state = view! {
            <div class="bench-state" role="status" data-testid="bench-state" data-value=name>
                <p class="muted">{words}</p>
                {commands(name)}
                {locked.then(|| view! { <Unlock /> })}
                {again
                    .then(|| {
                        view! {
                            <button type="button" class="tool" data-testid="bench-again" on:click=move |_| page.ask()>
                                {t!(i18n, benchmarks.again)}
                            </button>
                        }
                    })}
            </div>
        };
        Some(state.into_any())
    })
}

/// Returns the state's stable name, its message, and whether a retry may help.
fn said(i18n: Words, published: &Published) -> Option<(&'static str, String, bool)> {
    let fixed = |words: &'static str| words.to_owned();
    Some(match published {
        Published::Here(list) if !list.records.is_empty() => return None,
        Published::Loading => ("loading", fixed(t_string!(i18n, benchmarks.loading)), false),
        Published::Here(_) => ("empty", fixed(t_string!(i18n, benchmarks.empty)), true),
        Published::OfFile => ("file", fixed(t_string!(i18n, benchmarks.of_file)), false),
        Published::Not(Fetched::NothingHere | Fetched::Here(())) => {
            ("none", fixed(t_string!(i18n, benchmarks.nothing_here)), false)
        }
        Published::Not(Fetched::Closed(false)) => ("closed", fixed(t_string!(i18n, benchmarks.closed)), false),
        Published::Not(Fetched::Closed(true)) => ("closed", fixed(t_string!(i18n, benchmarks.wrong_token)), false),
        Published::Not(Fetched::Unreachable) => ("offline", fixed(t_string!(i18n, benchmarks.offline)), true),
        Published::Not(Fetched::Busy) => ("busy", fixed(t_string!(i18n, benchmarks.busy)), true),
        Published::Not(Fetched::Odd(why)) => {
            let words = t_string!(i18n, benchmarks.odd, why = why.clone()).to_string();
            ("odd", words, true)
        }
    })
}

/// Commands that publish records, shown when there are none.
fn commands(state: &str) -> Option<AnyView> {
    let lines: &[&str] = match state {
        "empty" => &["vramscope bench --upload URL"],
        "none" => &["vramscope bench -o card.json", "vramscope export DIR/data card.json"],
        _ => return None,
    };
    let lines: Vec<_> = lines.iter().map(|line| view! { <code>{*line}</code> }).collect();
    Some(view! { <p class="bench-commands">{lines}</p> }.into_any())
}

/// Form for a token, which is kept for this visit only.
#[component]
fn Unlock() -> impl IntoView {
    let i18n = use_i18n();
    let page = BenchmarksState::get();
    let token = RwSignal::new(String::new());
    view! {
        <form
            class="record-tools"
            on:submit=move |event: leptos::ev::SubmitEvent| {
                event.prevent_default();
                page.unlock(token.get_untracked());
            }
        >
            <input
                class="bench-filter"
                type="password"
                autocomplete="off"
                data-testid="bench-token"
                aria-label=move || t_string!(i18n, benchmarks.token)
                placeholder=move || t_string!(i18n, benchmarks.token)
                on:input:target=move |ev| token.set(ev.target().value())
            />
            <button type="submit" class="tool" data-testid="bench-unlock">
                {t!(i18n, benchmarks.unlock)}
            </button>
        </form>
    }
}
