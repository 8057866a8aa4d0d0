//! Lists of lines and remarks.

use leptos::prelude::*;

use super::phrases::Phrases;
use crate::i18n::use_i18n;
use crate::part::Text;
use crate::worker::launched::ReadLine;

/// An entry of a list: a line with its reason, or a remark.
#[derive(Debug, Clone)]
pub struct Item {
    /// Key and value of the line.
    line: Option<(String, String)>,
    words: String,
    /// Place of the line.
    place: String,
}

impl Item {
    /// A line, what is said of it, and its place.
    pub fn of_line(line: &ReadLine, words: String, place: String) -> Self {
        Self {
            line: Some((line.key.clone(), line.value.clone())),
            words,
            place,
        }
    }

    /// A remark.
    pub fn of_remark(words: String) -> Self {
        Self {
            line: None,
            words,
            place: String::new(),
        }
    }
}

/// Keys that share a reason.
#[derive(Debug, Clone)]
pub struct Group {
    /// The reason; empty if the title says it.
    pub reason: String,
    /// The keys.
    pub keys: Vec<String>,
}

/// A list under its title; nothing if it is empty.
#[component]
pub fn Listed(name: &'static str, title: Text, items: Vec<Item>) -> impl IntoView {
    if items.is_empty() {
        return ().into_any();
    }
    let count = items.len().to_string();
    let items: Vec<_> = items
        .into_iter()
        .map(|Item { line, words, place }| {
            let line = line.map(|(key, value)| view! { <code>{format!("{key}: {}", short(&value))}</code> " " });
            let place = (!place.is_empty()).then(|| view! { <span class="launch-place">{place}</span> });
            view! { <li data-testid="launch-item">{line} <span>{words}</span> {place}</li> }
        })
        .collect();
    view! {
        <section class=format!("launch-list launch-{name}") data-testid=format!("launch-{name}") data-value=count>
            <h3>{title}</h3>
            <ul>{items}</ul>
        </section>
    }
    .into_any()
}

/// Lines that decide the memory: key, value, place.
#[component]
pub fn Taken(taken: Vec<(String, String, String)>) -> impl IntoView {
    let phrases = Phrases::of(use_i18n());
    if taken.is_empty() {
        return ().into_any();
    }
    let count = taken.len().to_string();
    let rows: Vec<_> = taken
        .into_iter()
        .map(|(key, value, place)| {
            view! {
                <tr>
                    <th scope="row"><code>{key}</code></th>
                    <td><code>{short(&value)}</code></td>
                    <td class="launch-place">{place}</td>
                </tr>
            }
        })
        .collect();
    view! {
        <section class="launch-list" data-testid="launch-taken" data-value=count>
            <h3>{phrases.live("s_simulated")}</h3>
            <table class="launch-taken">
                <thead class="offscreen">
                    <tr>
                        <th scope="col">{phrases.live("key")}</th>
                        <th scope="col">{phrases.live("value")}</th>
                        <th scope="col">{phrases.live("where")}</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </section>
    }
    .into_any()
}

/// Keys by reason, folded: they change nothing, or nobody wrote them. Nothing if there are none.
#[component]
pub fn Quiet(name: &'static str, title: &'static str, groups: Vec<Group>) -> impl IntoView {
    let phrases = Phrases::of(use_i18n());
    let count: usize = groups.iter().map(|group| group.keys.len()).sum();
    if count == 0 {
        return ().into_any();
    }
    let groups: Vec<_> = groups
        .into_iter()
        .map(|Group { reason, keys }| {
            let reason = (!reason.is_empty()).then(|| view! { <dt>{reason}</dt> });
            let keys: Vec<_> = keys.into_iter().map(|key| view! { <code>{key}</code> " " }).collect();
            view! { <div>{reason} <dd>{keys}</dd></div> }
        })
        .collect();
    view! {
        <details class="launch-quiet" data-testid=format!("launch-{name}") data-value=count.to_string()>
            <summary>{phrases.live(title)} " " <span class="muted">{count.to_string()}</span></summary>
            <dl>{groups}</dl>
        </details>
    }
    .into_any()
}

/// Value as far as it fits a line.
fn short(value: &str) -> String {
    match value.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}
