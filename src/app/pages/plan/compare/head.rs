//! Header row of the comparison.

use leptos::prelude::*;

use super::columns::{Column, letter};
use crate::i18n::{t, t_string, use_i18n};
use crate::pages::plan::pin::pins;
use crate::shell::Store;
use crate::state::{Key, Reading};

/// Names of the setups; pinned ones can be removed or swapped with the current one.
#[component]
pub fn Head(all: Vec<Column>) -> impl IntoView {
    let i18n = use_i18n();
    let columns = all.into_iter().map(|column| {
        let name = column.name(i18n);
        view! {
            <th scope="col" data-testid="compare-column" data-name=name.clone()>
                <span class="compare-name">{name.clone()}</span>
                {column.pin.map(|i| view! { <Tools i /> })}
            </th>
        }
    });
    view! {
        <thead>
            <tr>
                <td></td>
                {columns.collect_view()}
            </tr>
        </thead>
    }
}

#[component]
fn Tools(i: usize) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let pinned = pins(store);
    let remove = move |_| {
        let mut pins = pinned.get_untracked();
        pins.remove(i);
        store.set(Key::Compare, pins.text());
    };
    let swap = move |_| {
        let entered = store.reading().with_untracked(Reading::entries);
        let mut pins = pinned.get_untracked();
        let Some(setup) = pins.replace(i, entered) else { return };
        store.edit(|draft| {
            draft.take(&setup, Key::decides_run);
            draft.set(Key::Compare, pins.text());
        });
    };
    view! {
        <button
            type="button"
            class="tool"
            data-testid="compare-swap"
            title=move || t_string!(i18n, compare.swap, name = letter(i)).to_string()
            aria-label=move || t_string!(i18n, compare.swap, name = letter(i)).to_string()
            on:click=swap
        >
            {t!(i18n, compare.swap_short)}
        </button>
        <button
            type="button"
            class="tool"
            data-testid="compare-remove"
            title=move || t_string!(i18n, compare.remove, name = letter(i)).to_string()
            aria-label=move || t_string!(i18n, compare.remove, name = letter(i)).to_string()
            on:click=remove
        >
            "×"
        </button>
    }
}
