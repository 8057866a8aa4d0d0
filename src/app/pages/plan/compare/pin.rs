use leptos::prelude::*;

use super::columns::pins;
use crate::i18n::{t_string, use_i18n};
use crate::shell::Store;
use crate::state::{Key, Reading};

/// Keeps the entered setup beside those to come.
#[component]
pub fn PinButton() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let pinned = pins(store);
    let full = move || !pinned.with(|p| p.has_room());
    let pin = move |_| {
        let entries = store.reading().with_untracked(Reading::training);
        let mut pins = pinned.get_untracked();
        pins.add(entries);
        store.set(Key::Compare, pins.text());
    };
    let title = move || full().then(|| t_string!(i18n, compare.full));
    view! {
        <button type="button" class="tool pin" data-testid="pin" disabled=full title=title on:click=pin>
            {move || t_string!(i18n, compare.pin)}
        </button>
    }
}
