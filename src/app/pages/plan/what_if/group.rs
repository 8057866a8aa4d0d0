//! Changes of one entry.

use leptos::prelude::*;

use super::changed::{Changed, NoEffect};
use super::trials::Row;
use crate::i18n::{Words, t_string, use_i18n};
use crate::pages::plan::shown::shown;
use crate::part::text;
use crate::shell::Store;
use crate::state::Key;
use crate::words;

/// Lists the changes of one entry under its name and current value.
#[component]
pub fn Group(
    /// Name of the entry.
    name: String,
    /// Formats the value before any change.
    now: Callback<(), String>,
    /// Words below the changes.
    #[prop(optional_no_strip)]
    note: Option<String>,
    /// The changes.
    children: Children,
) -> impl IntoView {
    let i18n = use_i18n();
    let now = text(move || t_string!(i18n, what_if.now, value = now.run(())));
    view! {
        <section class="what-if-group">
            <h3>{name} " " <span class="muted">{now}</span></h3>
            <ul>{children()}</ul>
            {note.map(|note| view! { <p class="muted small">{note}</p> })}
        </section>
    }
}

/// Changes of one entry of the setup.
pub fn of_entry(key: Key, rows: Vec<Row>) -> AnyView {
    let i18n = use_i18n();
    // Taken from the rows' own run: both stay while new changes are tried.
    let value = rows.first().map(|row| row.now.clone()).unwrap_or_default();
    let now = Callback::new(move |()| shown(i18n, key, value.clone()));
    let lines = rows.into_iter().map(|row| line(i18n, row)).collect_view();
    view! {
        <Group name=words::label(i18n, key) now note=None>
            {lines}
        </Group>
    }
    .into_any()
}

/// A change of the entry.
fn line(i18n: Words, row: Row) -> AnyView {
    let store = Store::get();
    let (key, value) = (row.key, row.tried.change.text());
    let name = row.name();
    let label = shown(i18n, key, value.clone());
    let effect = row.tried.effect.map_err(|why| NoEffect {
        is_only_unsimulated: why.is_only_unsimulated(),
        reason: words::setup_refusal(i18n, &why),
    });
    let pick = Callback::new(move |()| store.set(key, value.clone()));
    view! { <Changed name label effect holder=row.holder note=None entries=row.entries pick /> }.into_any()
}
