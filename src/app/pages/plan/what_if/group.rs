use leptos::prelude::*;

use super::row::Line;
use super::trials::Row;
use crate::i18n::{t_string, use_i18n};
use crate::pages::plan::shown::shown;
use crate::shell::Store;
use crate::state::Key;
use crate::words;

/// The changes of one entry, under its name and present value.
#[component]
pub fn Group(key: Key, rows: Vec<Row>) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let now = move || {
        let value = shown(i18n, key, store.reading().with(|r| r.good.get(key).to_owned()));
        t_string!(i18n, what_if.now, value = value).to_string()
    };
    view! {
        <section class="what-if-group">
            <h3>{words::label(i18n, key)} " " <span class="muted">{now}</span></h3>
            <ul>{rows.into_iter().map(|row| view! { <Line row /> }).collect_view()}</ul>
        </section>
    }
}
