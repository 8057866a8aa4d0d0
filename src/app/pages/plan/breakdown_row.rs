//! A row of the breakdown.

use leptos::prelude::*;
use vramscope_engine::format::{gib, share};
use vramscope_engine::report::derivation::Quantity;
use vramscope_engine::tape::Kind;
use vramscope_engine::units::Bytes;

use super::breakdown::{Line, Toggled};
use super::explain::Explained;
use crate::charts::{Bar, Segment, kind_class};
use crate::i18n::{Words, use_i18n};
use crate::part::text;
use crate::words;

/// A row of the tree: name, bar, bytes, share. Its element survives changes of its figures, so that it keeps the focus.
#[component]
pub fn BreakdownRow(line: Memo<Line>, toggled: Toggled) -> impl IntoView {
    let i18n = use_i18n();
    let path = StoredValue::new(line.with_untracked(|line| line.path.clone()));
    let (depth, name, joined) = path.with_value(|path| {
        let name = path.last().cloned().unwrap_or_default();
        (path.len(), name, path.join("/"))
    });
    let bytes = Memo::new(move |_| line.with(|line| line.bytes));
    let segments = Signal::derive(move || {
        line.with(|line| {
            let segments = line.pieces.iter();
            segments
                .map(|(kind, bytes)| segment(i18n, *kind, *bytes, line.whole))
                .collect::<Vec<_>>()
        })
    });
    let need = Signal::derive(move || gib(bytes.get()));
    let quantity = path.with_value(|path| Quantity::Row(path.clone()));
    view! {
        <tr
            class=format!("depth-{depth}")
            data-testid="breakdown-row"
            data-name=name
            data-path=joined
            data-value=text(move || bytes.get().get().to_string())
        >
            <th scope="row">
                <Name line path toggled />
            </th>
            <td class="breakdown-bar">
                <Bar segments />
            </td>
            <td class="breakdown-bytes">
                <Explained quantity text=need />
            </td>
            <td class="breakdown-share">{text(move || line.with(|line| share(line.bytes, line.whole)))}</td>
        </tr>
    }
}

/// Name of the row, which opens it if it has children.
#[component]
fn Name(line: Memo<Line>, path: StoredValue<Vec<String>>, toggled: Toggled) -> impl IntoView {
    let i18n = use_i18n();
    let shown = text(move || path.with_value(|path| words::row(i18n, path)));
    let toggle = move |_| {
        toggled.update(|t| {
            let path = path.get_value();
            match t.iter().position(|known| *known == path) {
                Some(at) => drop(t.swap_remove(at)),
                None => t.push(path),
            }
        });
    };
    if line.with_untracked(|line| !line.opens) {
        return view! { <span class="leaf">{shown}</span> }.into_any();
    }
    view! {
        <button
            type="button"
            class="twist"
            aria-expanded=text(move || line.with(|line| line.is_open).to_string())
            on:click=toggle
        >
            <svg class="arrow" viewBox="0 0 10 10" aria-hidden="true">
                <path d="M3 1.5l4 3.5-4 3.5" />
            </svg>
            {shown}
        </button>
    }
    .into_any()
}

fn segment(i18n: Words, kind: Kind, bytes: Bytes, whole: Bytes) -> Segment {
    Segment {
        class: kind_class(kind),
        share: bytes.get() as f64 / whole.get().max(1) as f64,
        title: format!("{}: {}", words::kind(i18n, kind), gib(bytes)),
    }
}
