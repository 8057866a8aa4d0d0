//! List of all selectable records.

use leptos::prelude::*;
use vramscope_benchmark::Entry;

use super::disk::Disk;
use super::page::{BenchmarksState, Published};
use super::states::State;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::{part, text};

/// A row of the list: a published record or a local file.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    entry: Entry,
    is_local: bool,
}

/// Lists all selectable records, with a filter and a button that loads more.
#[component]
pub fn Records() -> impl IntoView {
    let i18n = use_i18n();
    let page = BenchmarksState::get();
    let filter = RwSignal::new(String::new());
    let lines = Memo::new(move |_| lines(page));
    let found = Memo::new(move |_| {
        let words = filter.get().to_lowercase();
        lines.with(|all| {
            all.iter()
                .filter(|line| is_found(line, &words))
                .cloned()
                .collect::<Vec<_>>()
        })
    });
    let many = move || lines.with(|all| all.len() > 5);
    let has_lines = move || lines.with(|all| !all.is_empty());
    let next = move || matches!(page.published.get(), Published::Here(list) if list.next.is_some());
    view! {
        <Disk>
            <div class="chart-head">
                <h2>{t!(i18n, benchmarks.records)}</h2>
                <Show when=many>
                    <input
                        class="bench-filter"
                        type="search"
                        data-testid="bench-filter"
                        aria-label=move || t_string!(i18n, benchmarks.filter)
                        placeholder=move || t_string!(i18n, benchmarks.filter)
                        on:input:target=move |ev| filter.set(ev.target().value())
                    />
                </Show>
            </div>
            <State />
            <Show when=has_lines>
                <Found found />
            </Show>
            <Show when=next>
                <button
                    type="button"
                    class="tool"
                    data-testid="bench-more"
                    disabled=page.is_growing
                    on:click=move |_| page.grow()
                >
                    {t!(i18n, benchmarks.more)}
                </button>
            </Show>
        </Disk>
    }
}

/// Table of the records that the filter leaves.
#[component]
fn Found(found: Memo<Vec<Line>>) -> impl IntoView {
    let i18n = use_i18n();
    let rows = part(move || {
        let rows: Vec<_> = found.get().into_iter().map(|line| view! { <Row line /> }).collect();
        (!rows.is_empty()).then(|| rows.into_any())
    });
    view! {
        <div class="bench-list" tabindex="0" role="region" aria-label=move || t_string!(i18n, benchmarks.records)>
            <table data-testid="bench-list" data-value=move || found.with(Vec::len).to_string()>
                <thead>
                    <tr>
                        <th scope="col">{t!(i18n, benchmarks.card)}</th>
                        <th scope="col">{t!(i18n, benchmarks.date)}</th>
                        <th scope="col">{t!(i18n, benchmarks.reached_by)}</th>
                        <th scope="col">{t!(i18n, benchmarks.driver)}</th>
                        <th scope="col">{t!(i18n, benchmarks.kernels)}</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

fn lines(page: BenchmarksState) -> Vec<Line> {
    let local = page.local().into_iter().map(|(held, _)| Line {
        entry: Entry::of(&held.id, &held.record, 0),
        is_local: true,
    });
    let mut lines: Vec<Line> = local.collect();
    if let Published::Here(list) = page.published.get() {
        lines.extend(list.records.into_iter().map(|entry| Line { entry, is_local: false }));
    }
    lines
}

fn is_found(line: &Line, words: &str) -> bool {
    let entry = &line.entry;
    let all = [
        Some(entry.device.as_str()),
        Some(entry.backend.as_str()),
        entry.driver.as_deref(),
        entry.date.as_deref(),
    ];
    let text = all.into_iter().flatten().collect::<Vec<_>>().join(" ").to_lowercase();
    words.split_whitespace().all(|word| text.contains(word))
}

#[component]
fn Row(line: Line) -> impl IntoView {
    let i18n = use_i18n();
    let page = BenchmarksState::get();
    let Line { entry, is_local } = line;
    let (id, shown_id) = (entry.id.clone(), entry.id.clone());
    let on = Memo::new(move |_| page.wanted.with(|ids| ids.contains(&shown_id)));
    let date = entry.date.as_deref().map_or_else(|| "—".into(), day);
    let (measured, results) = (entry.measured, entry.results);
    let notes = text(move || notes(i18n, is_local, entry.quick, entry.complete));
    let toggled = id.clone();
    view! {
        <tr data-testid="bench-record" data-name=id.clone()>
            <th scope="row">
                <label class="bench-pick">
                    <input
                        type="checkbox"
                        data-testid="bench-pick"
                        prop:checked=on
                        on:change=move |_| page.toggle(&toggled)
                    />
                    <span>{entry.device.clone()} <span class="muted small">{notes}</span></span>
                </label>
            </th>
            <td title=entry.date.clone()>{date}</td>
            <td>{entry.backend.clone()}</td>
            <td>{entry.driver.clone().unwrap_or_else(|| "—".into())}</td>
            <td class="bench-count">
                {if measured == results { results.to_string() } else { format!("{measured} / {results}") }}
                {is_local.then(|| view! { <Remove id=id.clone() /> })}
            </td>
        </tr>
    }
}

#[component]
fn Remove(id: String) -> impl IntoView {
    let i18n = use_i18n();
    let page = BenchmarksState::get();
    view! {
        <button
            type="button"
            class="bench-remove"
            aria-label=move || t_string!(i18n, benchmarks.remove)
            title=move || t_string!(i18n, benchmarks.remove)
            on:click=move |_| page.remove(&id)
        >
            "×"
        </button>
    }
}

/// Returns the day of a time stamp such as `2026-11-20T15:04:05Z`.
pub fn day(date: &str) -> String {
    date.split('T').next().unwrap_or(date).to_owned()
}

fn notes(i18n: Words, is_local: bool, quick: bool, complete: bool) -> String {
    let all = [
        (is_local, t_string!(i18n, benchmarks.from_disk)),
        (quick, t_string!(i18n, benchmarks.quick)),
        (!complete, t_string!(i18n, benchmarks.incomplete)),
    ];
    let said = all.into_iter().filter(|(is_so, _)| *is_so).map(|(_, words)| words);
    said.collect::<Vec<_>>().join(" · ")
}
