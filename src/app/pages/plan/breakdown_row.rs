use leptos::prelude::*;
use vramscope_engine::format::{gib, share};
use vramscope_engine::report::derivation::Quantity;
use vramscope_engine::tape::Kind;
use vramscope_engine::units::Bytes;

use super::breakdown::{Line, Toggled};
use super::explain::Explained;
use crate::charts::{Bar, Segment, kind_class};
use crate::i18n::{Words, use_i18n};
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
    let shown = {
        let path = path.clone();
        move || words::row(i18n, &path)
    };
    let joined = path.join("/");
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
            data-path=joined
            data-value=bytes.get().to_string()
        >
            <th scope="row">{label}</th>
            <td class="breakdown-bar">
                <Bar segments />
            </td>
            <td class="breakdown-bytes">
                <Explained quantity=Quantity::Row(path) text=gib(bytes) />
            </td>
            <td class="breakdown-share">{share(bytes, whole)}</td>
        </tr>
    }
}

fn segment(i18n: Words, kind: Kind, bytes: Bytes, whole: Bytes) -> Segment {
    Segment {
        class: kind_class(kind),
        share: bytes.get() as f64 / whole.get().max(1) as f64,
        title: format!("{}: {}", words::kind(i18n, kind), gib(bytes)),
    }
}
