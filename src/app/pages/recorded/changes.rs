//! Single changes to the recorded step that need no other recording.

use leptos::prelude::*;
use vramscope_engine::format::{gib, grouped};
use vramscope_engine::report::Phase;

use super::page::RecordedState;
use super::words;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::pages::plan::{Changed as ChangedRow, Group, NoEffect, Trials, listed};
use crate::shell::Store;
use crate::simulation::Simulation;
use crate::state::{Draft, Key, Reading, named_counts};
use crate::words::label;
use crate::worker::recorded::{Change, Changed, Facts};
use crate::worker::{Answer, Ask};

/// A change, and the run that it applies to.
#[derive(Debug, Clone)]
struct Row {
    changed: Changed,
    /// Value before the change.
    now: Now,
    /// Entries after the change.
    entries: Draft,
    /// Phase that holds the peak before the change.
    holder: Phase,
}

/// Value before a change.
#[derive(Debug, Clone, PartialEq)]
enum Now {
    Size(u64),
    Segments(bool),
    Form(String),
    Card(String),
}

impl Row {
    /// Sort key: the memory difference; a change that cannot run sorts last.
    fn cost(&self) -> i64 {
        self.changed
            .effect
            .as_ref()
            .map_or(i64::MAX, |effect| effect.difference)
    }
}

/// Lists the changes by what they change.
#[component]
pub fn Changes() -> impl IntoView {
    let i18n = use_i18n();
    let trials = trials();
    let groups = move || {
        let groups = trials.groups(
            |row| subject(i18n, &row.changed.change),
            Row::cost,
            |row| row.changed.change.name(),
        );
        Some(
            groups
                .into_iter()
                .map(|(name, rows)| group(i18n, name, rows))
                .collect_view()
                .into_any(),
        )
    };
    view! {
        <section class="card recorded-changes">
            <h2>{t!(i18n, what_if.title)}</h2>
            {listed(trials, groups)}
        </section>
    }
}

fn trials() -> Trials<Row> {
    let (simulation, page) = (Simulation::get(), RecordedState::get());
    let reading = Store::get().reading();
    let entries = Memo::new(move |_| reading.with(Reading::of_recorded));
    Trials::follow(entries, move || {
        let (run, number, facts) = (simulation.run()?, page.number.get()?, page.facts.get()?);
        let holder = run.figures.peak_phase;
        let base = simulation.entries.get_value();
        let ask = Ask::RecordedChanges {
            number,
            entries: base.clone(),
            now: run.figures.now(),
        };
        let row = move |answer| {
            let Answer::RecordedChange(changed) = answer else {
                return None;
            };
            let changed = changed.open()?;
            let mut entries = base.clone();
            changed.change.apply(&mut entries);
            Some(Row {
                now: now(&changed.change, &base, &facts),
                changed,
                entries,
                holder,
            })
        };
        Some((ask, Box::new(row)))
    })
}

/// Returns the value that a change replaces.
fn now(change: &Change, entries: &Draft, facts: &Facts) -> Now {
    match change {
        Change::Size(name, _) => {
            let chosen = named_counts(entries.get(Key::Sizes)).unwrap_or_default();
            let chosen = chosen
                .into_iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value);
            let first = facts
                .sizes
                .iter()
                .find(|size| size.name == *name)
                .map(|size| size.first);
            Now::Size(chosen.or(first).unwrap_or_default())
        }
        Change::ExpandableSegments(on) => Now::Segments(!on),
        Change::OptimizerForm(_) => Now::Form(match entries.get(Key::OptimizerForm) {
            "recorded" => facts.optimizer_forms.first().cloned().unwrap_or_default(),
            chosen => chosen.to_owned(),
        }),
        Change::Card(_) => Now::Card(entries.get(Key::Gpu).to_owned()),
    }
}

/// Name of what a change changes.
fn subject(i18n: Words, change: &Change) -> String {
    match change {
        Change::Size(name, _) => words::size(i18n, name),
        Change::ExpandableSegments(_) => label(i18n, Key::ExpandableSegments),
        Change::OptimizerForm(_) => label(i18n, Key::OptimizerForm),
        Change::Card(_) => label(i18n, Key::Gpu),
    }
}

fn switched(i18n: Words, on: bool) -> String {
    match on {
        true => t_string!(i18n, what_if.on).to_owned(),
        false => t_string!(i18n, what_if.off).to_owned(),
    }
}

fn group(i18n: Words, name: String, rows: Vec<Row>) -> AnyView {
    let before = rows.first().map(|row| row.now.clone());
    let is_card = matches!(before, Some(Now::Card(_)));
    let now = Callback::new(move |()| match &before {
        Some(Now::Size(value)) => grouped(*value),
        Some(Now::Segments(on)) => switched(i18n, *on),
        Some(Now::Form(name) | Now::Card(name)) => name.clone(),
        None => String::new(),
    });
    let lines = rows.into_iter().map(|row| line(i18n, row)).collect_view();
    let note = is_card.then(|| t_string!(i18n, recorded.other_cards).to_owned());
    view! {
        <Group name now note>
            {lines}
        </Group>
    }
    .into_any()
}

fn line(i18n: Words, row: Row) -> AnyView {
    let store = Store::get();
    let Changed { change, effect, fit } = row.changed;
    let label = match &change {
        Change::Size(_, value) => grouped(*value),
        Change::ExpandableSegments(on) => switched(i18n, *on),
        Change::OptimizerForm(name) | Change::Card(name) => name.clone(),
    };
    // Another card changes the room rather than what is needed.
    let fit = fit.filter(|_| effect.is_ok() && matches!(change, Change::Card(_)));
    let note = fit.map(|[needed, room]| t_string!(i18n, recorded.needs, needed = gib(needed), room = gib(room)));
    let name = change.name();
    let effect = effect.map_err(|fault| NoEffect {
        is_only_unsimulated: false,
        reason: words::fault(i18n, &fault),
    });
    let pick = Callback::new(move |()| store.edit(|draft| change.apply(draft)));
    view! { <ChangedRow name label effect holder=row.holder note entries=row.entries pick /> }.into_any()
}
