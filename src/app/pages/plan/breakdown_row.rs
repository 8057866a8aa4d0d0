use leptos::prelude::*;
use vramscope_engine::format::{exact, gib, share};
use vramscope_engine::tape::{Component, Kind};
use vramscope_engine::units::Bytes;

use super::breakdown::{Line, Toggled};
use crate::charts::{Bar, Segment, kind_class};
use crate::i18n::{Words, t_string, use_i18n};
use crate::words;

/// One line of the tree: name, bar, bytes, share.
#[component]
pub fn BreakdownRow(line: Line, toggled: Toggled) -> impl IntoView {
    let i18n = use_i18n();
    let Line {
        path,
        bytes,
        whole,
        pieces,
        opens,
        is_open,
    } = line;
    let depth = path.len();
    let name = path.last().cloned().unwrap_or_default();
    let shown = shown_name(i18n, depth, &name);
    let segments = pieces
        .into_iter()
        .map(|(kind, bytes)| segment(i18n, kind, bytes, whole))
        .collect();
    let toggle = {
        let path = path.clone();
        move |_| {
            toggled.update(|t| {
                if !t.remove(&path) {
                    t.insert(path.clone());
                }
            });
        }
    };
    let label = match opens {
        true => view! {
            <button type="button" class="twist" aria-expanded=is_open.to_string() on:click=toggle>
                <svg class="arrow" viewBox="0 0 10 10" aria-hidden="true">
                    <path d="M3 1.5l4 3.5-4 3.5" />
                </svg>
                {shown}
            </button>
        }
        .into_any(),
        false => view! { <span class="leaf">{shown}</span> }.into_any(),
    };
    view! {
        <tr
            class=format!("depth-{depth}")
            data-testid="breakdown-row"
            data-name=name
            data-path=path.join("/")
            data-value=bytes.get().to_string()
        >
            <th scope="row">{label}</th>
            <td class="breakdown-bar">
                <Bar segments />
            </td>
            <td class="breakdown-bytes" title=exact(bytes)>
                {gib(bytes)}
            </td>
            <td class="breakdown-share">{share(bytes, whole)}</td>
        </tr>
    }
}

/// Components and kinds have names in every language; layers and tensors have their names in code.
fn shown_name(i18n: Words, depth: usize, name: &str) -> String {
    let component = || Component::ALL.into_iter().find(|c| c.label() == name);
    let kind = || Kind::ALL.into_iter().find(|k| k.label() == name);
    match depth {
        1 => component().map(|c| words::component(i18n, c)),
        2 => kind().map(|k| words::kind(i18n, k)),
        3 if name.is_empty() => Some(t_string!(i18n, breakdown.whole_model).to_string()),
        _ => None,
    }
    .unwrap_or_else(|| name.to_owned())
}

fn segment(i18n: Words, kind: Kind, bytes: Bytes, whole: Bytes) -> Segment {
    Segment {
        class: kind_class(kind),
        share: bytes.get() as f64 / whole.get().max(1) as f64,
        title: format!("{}: {}", words::kind(i18n, kind), gib(bytes)),
    }
}
