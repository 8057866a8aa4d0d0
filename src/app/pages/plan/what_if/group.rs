use leptos::prelude::*;

use super::row::Line;
use super::trials::Row;
use crate::i18n::{Words, t_string, use_i18n};
use crate::shell::Store;
use crate::state::{Form, Key};
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

/// A value as the controls show it.
pub fn shown(i18n: Words, key: Key, value: String) -> String {
    match (key.form(), value.as_str()) {
        (Form::Switch, "true") => t_string!(i18n, what_if.on).to_string(),
        (Form::Switch, "false") => t_string!(i18n, what_if.off).to_string(),
        _ => words::choice(i18n, key, &value),
    }
}
