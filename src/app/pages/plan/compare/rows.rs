//! Rows of the comparison.

use leptos::prelude::*;
use vramscope_engine::format::{difference, gib, rounds_to_nothing};
use vramscope_engine::report::Phase;
use vramscope_engine::units::Bytes;

use super::columns::Column;
use crate::charts::{Bar, Segment, part_class};
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::pages::plan::shown::shown;
use crate::pages::plan::verdict::{Icon, headline};
use crate::state::{Draft, Key, world};
use crate::words;
use crate::worker::view::Summary;

/// Verdict of each setup on its card.
#[component]
pub fn Verdicts(all: Vec<Column>) -> impl IntoView {
    let i18n = use_i18n();
    let cells = all.into_iter().map(move |column| match column.found {
        None => view! { <td class="muted">"…"</td> }.into_any(),
        Some(Err(why)) => view! { <td class="compare-refusal">{words::refusal(i18n, &why)}</td> }.into_any(),
        Some(Ok(Summary { card: Err(message), .. })) => view! { <td class="muted">{message}</td> }.into_any(),
        Some(Ok(Summary { card: Ok(card), .. })) => {
            let verdict = card.fit.verdict;
            view! {
                <td data-testid="compare-verdict" data-value=verdict.name()>
                    <span class=format!("compare-verdict {}", card.colour(verdict))>
                        <Icon verdict />
                        <span>{headline(i18n, &card)}</span>
                    </span>
                </td>
            }
            .into_any()
        }
    });
    view! {
        <tr>
            <th scope="row">{t!(i18n, compare.verdict)}</th>
            {cells.collect_view()}
        </tr>
    }
}

/// Memory of each setup by part, all on one scale.
#[component]
pub fn Parts(all: Vec<Column>) -> impl IntoView {
    let i18n = use_i18n();
    let first = all.first().and_then(Column::summary).map(Summary::needed);
    let scale = all.iter().filter_map(Column::summary).map(Summary::needed).max();
    let scale = scale.unwrap_or(Bytes::ZERO).get().max(1) as f64;
    let cells = all.into_iter().map(|column| {
        let summary = column.summary();
        let segments = summary.map(|s| segments(i18n, s, scale));
        let needed = summary.map(Summary::needed);
        view! {
            <td
                data-testid="compare-needed"
                data-name=column.name(i18n)
                data-value=needed.map(|bytes| bytes.get().to_string())
            >
                {segments.map(|segments| view! { <Bar segments /> })}
                <Figure bytes=needed first />
            </td>
        }
    });
    view! {
        <tr>
            <th scope="row">{t!(i18n, compare.needed)}</th>
            {cells.collect_view()}
        </tr>
    }
}

fn segments(i18n: Words, summary: &Summary, scale: f64) -> Vec<Segment> {
    let segment = |(part, bytes): &(_, Bytes)| Segment {
        class: part_class(*part),
        share: bytes.get() as f64 / scale,
        title: format!("{}: {}", words::part(i18n, *part), gib(*bytes)),
    };
    summary.parts.iter().map(segment).collect()
}

/// A figure and its difference from that of the first setup.
#[component]
fn Figure(bytes: Option<Bytes>, first: Option<Bytes>) -> impl IntoView {
    let away = bytes.zip(first).map(|(bytes, first)| bytes.difference_to(first));
    let away = away.filter(|away| !rounds_to_nothing(*away));
    let class = if away < Some(0) { "compare-less" } else { "compare-more" };
    view! {
        <span class="compare-figure">
            <span>{bytes.map(gib)}</span>
            <span class=class>{away.map(difference)}</span>
        </span>
    }
}

/// Peak of each phase; the phase that holds the overall peak is highlighted.
#[component]
pub fn Figures(all: Vec<Column>) -> impl IntoView {
    let i18n = use_i18n();
    [Phase::Forward, Phase::Backward, Phase::Optimizer].map(|phase| {
        // A model that does not train has only one phase.
        let peak = |column: &Column| {
            let bytes = column.summary().map(|s| s.figures.steady.peak_of(phase));
            bytes.filter(|bytes| *bytes > Bytes::ZERO)
        };
        let first = all.first().and_then(peak);
        let cells = all.iter().map(|column| {
            let holds = column.summary().is_some_and(|s| s.figures.peak_phase == phase);
            view! {
                <td class:phase-holds=holds>
                    <Figure bytes=peak(column) first />
                </td>
            }
        });
        let cells = cells.collect_view();
        view! {
            <tr>
                <th scope="row">
                    {t_string!(i18n, compare.peak, phase = words::phase(i18n, phase))}
                </th>
                {cells}
            </tr>
        }
    })
}

/// Entries that differ between the setups; values unlike the first setup's are marked.
#[component]
pub fn Differences(all: Vec<Column>) -> impl IntoView {
    let i18n = use_i18n();
    let differs = |key: &Key| {
        let mut values = all.iter().map(|column| column.entries.get(*key));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    // A strategy means something for several GPUs alone.
    let differs = |key: &Key| differs(key) || *key == Key::Strategy && differs(&Key::World);
    let keys: Vec<_> = Key::all().filter(|key| key.decides_run()).filter(differs).collect();
    let alike = keys.is_empty().then(|| {
        view! {
            <tr>
                <td></td>
                <td class="muted" colspan=all.len().to_string()>
                    {t!(i18n, compare.alike)}
                </td>
            </tr>
        }
    });
    let rows = keys.into_iter().map(|key| {
        let first = all.first().map(|column| column.entries.get(key).to_owned());
        let cells = all.iter().map(|column| {
            let marked = first.as_deref() != Some(column.entries.get(key));
            view! { <td class:compare-marked=marked>{value(i18n, &column.entries, key)}</td> }
        });
        let cells = cells.collect_view();
        view! {
            <tr data-testid="compare-key" data-name=key.name()>
                <th scope="row">{words::label(i18n, key)}</th>
                {cells}
            </tr>
        }
    });
    view! {
        {rows.collect_view()}
        {alike}
    }
}

fn value(i18n: Words, entries: &Draft, key: Key) -> String {
    match entries.get(key) {
        _ if key.shares() && key != Key::World && world(entries) == 1 => "—".to_owned(),
        "" if key == Key::NotThisRun => "—".to_owned(),
        "" => t_string!(i18n, compare.default).to_string(),
        _ if key == Key::NotThisRun => {
            let all = entries.left_out().into_iter();
            all.map(|left| left.given.unwrap_or(left.why))
                .collect::<Vec<_>>()
                .join(", ")
        }
        text => shown(i18n, key, text.chars().take(40).collect()),
    }
}
