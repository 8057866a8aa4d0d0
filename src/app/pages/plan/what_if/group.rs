//! Changes of one entry.

use leptos::prelude::*;

use super::row::Line;
use super::trials::Row;
use crate::i18n::{t_string, use_i18n};
use crate::pages::plan::shown::shown;
use crate::part::text;
use crate::state::Key;
use crate::words;

/// Lists the changes of one entry under its name and current value.
#[component]
pub fn Group(key: Key, rows: Vec<Row>) -> impl IntoView {
    let i18n = use_i18n();
    // Taken from the rows' own run: both stay while new changes are tried.
    let value = rows.first().map(|row| row.now.clone()).unwrap_or_default();
    let now = text(move || t_string!(i18n, what_if.now, value = shown(i18n, key, value.clone())));
    view! {
        <section class="what-if-group">
            <h3>{words::label(i18n, key)} " " <span class="muted">{now}</span></h3>
            <ul>{rows.into_iter().map(|row| view! { <Line row /> }).collect_view()}</ul>
        </section>
    }
}
