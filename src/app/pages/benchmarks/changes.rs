//! Comparison of one benchmark record with another.

use leptos::prelude::*;
use vramscope_benchmark::{Change, Comparison, Differs, Outcome, Part, Record};
use vramscope_engine::units::Bytes;

use super::curves::Menu;
use super::list::day;
use super::page::{BenchmarksState, Held, Shown};
use crate::charts::Unit;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::part;

/// Number of changes shown until the user asks for all.
const SHOWN: usize = 12;

/// Compares one record with another, if at least two are shown.
#[component]
pub fn Changes() -> impl IntoView {
    let i18n = use_i18n();
    let page = BenchmarksState::get();
    let (old, new) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let all = RwSignal::new(false);
    let sides = Memo::new(move |_| page.shown.with(|shown| sides(shown, &old.get(), &new.get())));
    let menu = move |testid: &'static str, label: Signal<String>, side: usize, set: RwSignal<String>| {
        let choices = move || page.shown.with(choices);
        let used = move || sides.get().map_or_else(String::new, |sides| sides[side].id.clone());
        view! {
            <Menu
                testid
                label
                choices=Signal::derive(choices)
                used=Signal::derive(used)
                choose=Callback::new(move |id| {
                    all.set(false);
                    set.set(id);
                })
            />
        }
    };
    part(move || {
        sides.with(Option::is_some).then(|| {
            let found = part(move || {
                let [old, new] = sides.get()?.map(|side| side.0);
                Some(found(i18n, &old.record, &new.record, all))
            });
            let before = Signal::derive(move || t_string!(i18n, benchmarks.before).to_string());
            let now = Signal::derive(move || t_string!(i18n, benchmarks.now).to_string());
            view! {
                <section class="card" data-testid="bench-changes">
                    <h2>{t!(i18n, benchmarks.changes)}</h2>
                    <div class="chart-tools">
                        {menu("change-before", before, 0, old)} {menu("change-now", now, 1, new)}
                    </div>
                    {found}
                </section>
            }
            .into_any()
        })
    })
}

/// A record to compare; equal if it is the same record.
#[derive(Debug, Clone)]
struct Side(Held);

impl PartialEq for Side {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl std::ops::Deref for Side {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.0
    }
}

/// Returns the two selected records, by default the first two with the older one first.
fn sides(shown: &Shown, old: &str, new: &str) -> Option<[Side; 2]> {
    let [a, b, ..] = &shown.records[..] else {
        return None;
    };
    let (before, now) = if a.record.date <= b.record.date { (a, b) } else { (b, a) };
    let named = |id: &str| shown.records.iter().find(|held| held.id == id);
    let sides = [named(old).unwrap_or(before), named(new).unwrap_or(now)];
    Some(sides.map(|held| Side(held.clone())))
}

fn choices(shown: &Shown) -> Vec<(String, String)> {
    let name = |(held, name): (&Held, &String)| {
        let date = held.record.date.as_deref().map(day).unwrap_or_default();
        (held.id.clone(), format!("{name} {date}"))
    };
    shown.records.iter().zip(&shown.names).map(name).collect()
}

fn found(i18n: Words, old: &Record, new: &Record, all: RwSignal<bool>) -> AnyView {
    let comparison = Comparison::of(old, new);
    let changed = comparison.changes.len();
    let summary = t_string!(
        i18n,
        benchmarks.change_count,
        changed = changed.to_string(),
        same = comparison.same.to_string(),
        came = comparison.came.to_string(),
        gone = comparison.gone.to_string(),
        beyond = Comparison::BEYOND.to_string(),
        least = (100.0 * Comparison::LEAST).to_string()
    );
    let differ: Vec<_> = comparison
        .machine
        .iter()
        .map(|differs| machine(i18n, differs))
        .collect();
    let shown = if all.get() { changed } else { changed.min(SHOWN) };
    let rows: Vec<_> = by_weight(&comparison)
        .into_iter()
        .take(shown)
        .map(|change| row(i18n, change))
        .collect();
    let more = (changed > shown).then(|| {
        let words = t_string!(i18n, benchmarks.all_changes, changed = changed.to_string());
        view! {
            <button type="button" class="tool" data-testid="all-changes" on:click=move |_| all.set(true)>
                {words}
            </button>
        }
    });
    let table = (!rows.is_empty()).then(|| table(i18n, rows));
    view! {
        <p class="small" role="status" data-testid="change-count" data-value=changed.to_string()>
            {summary}
        </p>
        <ul class="small bench-differ">{differ}</ul>
        {table}
        {more}
    }
    .into_any()
}

/// A difference between the two machines.
fn machine(i18n: Words, differs: &Differs<'_>) -> AnyView {
    let what = match differs.what {
        Part::Card => t_string!(i18n, benchmarks.card).to_owned(),
        Part::Driver => t_string!(i18n, benchmarks.driver).to_owned(),
        Part::Library(name) => name.to_owned(),
    };
    let [before, now] = [differs.before, differs.now].map(|side| side.unwrap_or("—"));
    view! { <li>{format!("{what}: {before} → {now}")}</li> }.into_any()
}

/// Kernels that failed on either side first, then by the size of the change.
fn by_weight<'a>(comparison: &'a Comparison<'a>) -> Vec<&'a Change<'a>> {
    let weight = |change: &Change<'_>| {
        change
            .ratio()
            .map_or(f64::INFINITY, |ratio| f64::max(ratio, 1.0 / ratio))
    };
    let mut changes: Vec<&Change<'_>> = comparison.changes.iter().collect();
    vramscope_engine::order::sort_by(&mut changes, |a, b| weight(b).total_cmp(&weight(a)));
    changes
}

fn table(i18n: Words, rows: Vec<AnyView>) -> AnyView {
    view! {
        <div
            class="bench-list"
            tabindex="0"
            role="region"
            aria-label=t_string!(i18n, benchmarks.changes)
        >
            <table>
                <thead>
                    <tr>
                        <th scope="col">{t_string!(i18n, benchmarks.kernel)}</th>
                        <th scope="col">{t_string!(i18n, benchmarks.before)}</th>
                        <th scope="col">{t_string!(i18n, benchmarks.now)}</th>
                        <th scope="col">{t_string!(i18n, benchmarks.change)}</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn row(i18n: Words, change: &Change) -> AnyView {
    let side = |ns: Option<u64>| ns.map_or_else(|| "—".into(), |ns| Unit::Seconds.words(ns as f64 / 1e9));
    let (class, words) = match change.ratio() {
        Some(ratio) if ratio < 1.0 => ("compare-less", percent(ratio)),
        Some(ratio) => ("compare-more", percent(ratio)),
        None if change.now_ns.is_some() => ("compare-less", t_string!(i18n, benchmarks.runs_now).to_owned()),
        None => ("compare-more", why(i18n, change.outcome)),
    };
    view! {
        <tr data-testid="change" data-name=change.kernel.label() data-value=change.ratio().map(|r| r.to_string())>
            <th scope="row">{change.kernel.label()}</th>
            <td>{side(change.before_ns)}</td>
            <td>{side(change.now_ns)}</td>
            <td class=class>{words}</td>
        </tr>
    }
    .into_any()
}

/// Formats the change of a time: in percent, or as a factor if it is large.
fn percent(ratio: f64) -> String {
    match ratio {
        5.0.. => format!("× {ratio:.0}"),
        ..0.2 => format!("÷ {:.0}", 1.0 / ratio),
        ..1.0 => format!("−{:.1}%", 100.0 * (1.0 - ratio)),
        _ => format!("+{:.1}%", 100.0 * (ratio - 1.0)),
    }
}

/// Explains why a kernel has no time.
fn why(i18n: Words, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Measured(_) => String::new(),
        Outcome::OutOfMemory {
            needed_bytes,
            free_bytes,
        } => {
            let (needed, free) = (
                Bytes::new(*needed_bytes).to_string(),
                Bytes::new(*free_bytes).to_string(),
            );
            t_string!(i18n, benchmarks.does_not_fit, needed = needed, free = free).to_string()
        }
        Outcome::FailedCheck(_) => t_string!(i18n, benchmarks.wrong_result).to_owned(),
        Outcome::Unsupported { reason } | Outcome::Failed { reason } => reason.clone(),
    }
}
